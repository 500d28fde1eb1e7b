#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Messages up to 2 KiB make no system calls: strace counts those of a ping-pong, and ten times the
# round trips must not make more of them.
# Usage: test_syscalls.sh PINGPONG
set -eu
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"
pingpong=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# calls HOW BYTES TRIPS: the number of system calls of all processes together.
calls() {
	strace -f -c -o "$tmp/counts" "$pingpong" "$@" >"$tmp/out" 2>&1 || {
		cat "$tmp/out" >&2
		return 1
	}
	awk '$NF == "total" { print $4 }' "$tmp/counts"
}

# A process that loses its core to another job is, to its peer, outside the library and is then
# served with system calls: a few are allowed for each time that happened. Where it happened to one
# message in ten, the run says nothing and is repeated.
no_calls_per_message() {
	local few many lost
	for _ in 1 2 3 4 5; do
		few=$(calls "$1" "$2" 3000)
		many=$(calls "$1" "$2" 30000)
		lost=$(sed -n 's/^# preempted \([0-9]*\) times$/\1/p' "$tmp/out")
		echo "3000 round trips: $few calls; 30000: $many calls, preempted $lost times"
		[ "$lost" -ge 6000 ] || break
	done
	cat "$tmp/counts"
	# 54000 messages more
	[ $((many - few)) -lt $((540 + 5 * lost)) ]
}

if ! strace -f -c -o "$tmp/counts" true >/dev/null 2>&1; then
	tap_skip 'no system calls per message' 'strace is missing or not permitted'
elif [ "$(nproc)" -lt 2 ]; then
	tap_skip 'no system calls per message' 'one core: processes must take turns'
else
	for bytes in 0 8 2048; do
		check "no system calls per message of $bytes bytes, polled" \
			no_calls_per_message get "$bytes"
	done
	export PTL_SPIN_US=1000000
	check 'no system calls per message of 8 bytes, waited for' no_calls_per_message wait 8
	check 'no system calls per message of 2048 bytes, waited for' no_calls_per_message wait 2048
fi
tap_done
