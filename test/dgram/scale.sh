#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# A barrier and messages of all to one among 4,096 simulated processes: nobody leaves too early and nothing is
# missing (bench/scale checks that itself), some numbers that are no powers of two, and what is kept of idle peers stays small.
# Usage: scale.sh SCALE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
scale=$1
out=$(mktemp)
trap 'rm -f "$out"' EXIT

runs() {
	"$scale" --from 4096 --to 4096 >"$out" || { cat "$out"; return 1; }
}
# the line of a job of 4,096: processes, what, ...
line() {
	grep -E "^ +4096 +$1" "$out"
}
# Records of 256 bytes for each of 12 peers, the table they are found by, and the machine.
idle_is_small() {
	line barrier | awk '{ print "bytes when idle: " $8; exit !($8 > 0 && $8 < 256 * 16 + 2048) }'
}
uneven() {
	for n in 3 7 96 1000; do
		"$scale" --from $n --to $n || return
	done
}
rejects() {
	! "$scale" --from 1 && ! "$scale" --to 65537 && ! "$scale" --what
}

check "4,096 processes" runs
check "all of them pass a barrier" line barrier
check "each sends one message to one of them" line "all to one"
check "so do 3, 7, 96 and 1,000" uneven
check "idle peers take 256 bytes each" idle_is_small
check "numbers that make no sense are refused" rejects
tap_done
