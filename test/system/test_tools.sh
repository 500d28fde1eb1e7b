#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# portals-stat shows what a hung job hangs on, portals-info what there is and where it comes from.
# Usage: test_tools.sh PORTALS_INFO PORTALS_STAT HUNG REFUSE
set -eu
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"
info=$1
stat=$2
hung=$3
refuse=$4
log=$(mktemp)
PTL_SHM_CMA=off "$3" >"$log" 2>&1 &
job=$!
trap 'kill -9 "$job" 2>/dev/null || true; rm -f "$log"' EXIT

deadline=$((SECONDS + 20))
until grep -q '^hung ' "$log" || [ "$SECONDS" -ge "$deadline" ]; do :; done

shows() {
	local want=$1 output
	shift
	output=$("$@")
	echo "$output"
	grep -q -- "$want" <<<"$output"
}
asleep() {
	until shows '^  1 threads asleep in a wait' "$stat" "$job" || [ "$SECONDS" -ge "$deadline" ]; do :; done
	shows '^  1 threads asleep in a wait' "$stat" "$job"
}
watches() {
	local watcher times=0 until=$((SECONDS + 20))
	"$stat" --watch=0.2 "$job" >"$log.watch" &
	watcher=$!
	until [ "$times" -ge 3 ] || [ "$SECONDS" -ge "$until" ]; do
		sleep 0.1
		times=$(grep -c 'waiting for peers: 1' "$log.watch") || true
	done
	kill "$watcher"
	wait "$watcher" || true
	rm -f "$log.watch"
	[ "$times" -ge 3 ]
}
refuses() {
	local output status=0
	output=$("$stat" $$ 2>&1) || status=$?
	echo "$output"
	[ "$status" -eq 1 ] && grep -q 'has no Portals interface open' <<<"$output"
}
# Where memfds are refused the memory is a deleted file.
deleted() {
	local other until=$((SECONDS + 20)) found=1
	PTL_SHM_CMA=off "$refuse" memfd_create 1 "$hung" >/dev/null 2>&1 &
	other=$!
	until shows 'waiting for peers: 1' "$stat" "$other" || [ "$SECONDS" -ge "$until" ]; do sleep 0.1; done
	shows 'waiting for peers: 1' "$stat" "$other" || found=0
	kill -9 "$other" 2>/dev/null || true
	[ "$found" -eq 1 ]
}
without_proc() {
	local output
	# shellcheck disable=SC2016 # expanded by the inner shell
	output=$(unshare -m bash -c 'mount -t tmpfs tmpfs /proc; "$@"' bash "$stat" 1 2>&1) || true
	echo "$output"
	grep -q '/proc is not mounted' <<<"$output"
}
configured() {
	export PTL_SPIN_US=7
	shows 'PTL_SPIN_US *= 7 *from the environment, default -1' "$info" --config
}

check 'a hung process shows the operation it waits for' \
	shows 'waiting for peers: 1 operations; the oldest, for .*: get of 12345 bytes .*portal 5, match bits 0xfeed' \
	"$stat" "$job"
check 'what came unexpectedly is shown against its high-water mark' \
	shows '^  block     portal 9: 1000 of 4096 bytes used, full with less than 1024 left$' "$stat" "$job"
check 'its waiting thread sleeps' asleep
check 'it can be watched' watches
check 'a process without Portals is said to have none' refuses
if "$refuse" memfd_create 1 true; then
	check 'memory that is no memfd is found, too' deleted
else
	tap_skip 'memory that is no memfd is found, too' 'no system call filters are permitted here'
fi
if unshare -m bash -c 'mount -t tmpfs tmpfs /proc' 2>/dev/null; then
	check 'that /proc is not mounted is said' without_proc
else
	tap_skip 'that /proc is not mounted is said' 'mount namespaces are not permitted here'
fi
check 'the transports are shown' shows '^  shm *usable: ' "$info" --transports
check 'who makes progress is shown, with the reason' \
	shows '^  network  nobody: .*PTL_PROGRESS=poll' env PTL_PROGRESS=poll "$info" --transports
check 'the limits are shown' shows 'portals 256, access control entries 64, match entries 1048576' "$info"
check 'a setting says where it came from' configured
tap_done
