#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Print what is not tested, and why. Usage: skip.sh REASON
echo "1..0 # SKIP $1"
