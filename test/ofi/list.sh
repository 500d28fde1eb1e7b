#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# portals-info lists libfabric's providers in the order in which they would be taken, and says of others why not.
# Usage: list.sh PORTALS-INFO
set -eu
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"
info=$1

# shows TRANSPORTS TEXT: the line below that of the transport
shows() {
	local output
	output=$(PTL_NAL=$1 "$info" --transports)
	echo "$output"
	grep -A 1 '^  ofi ' <<<"$output" | tail -n 1 | grep -qx " *$2"
}
check 'what is taken comes first' shows ofi:tcp '1\. tcp[^ ]*: long messages .*'
check 'also where the transport cannot be used' shows ofi:nobody '-  .*: is not the one that PTL_NAL names'
check 'what needs to be asked for says so' \
	shows auto '\(1\. .*\|-  .*: is not for a fabric, and taken only if PTL_NAL names ofi\)'
tap_done
