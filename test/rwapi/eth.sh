#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Runs a job over Ethernet, on the links that ../net/wire.sh has made.
# Usage: eth.sh --interfaces NAMES COMMAND [ARG...]
set -eu
export PTL_NAL=eth PTL_IFACE=${2%%,*}
shift 2
exec "$@"
