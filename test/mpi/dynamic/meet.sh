#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Jobs that meet by a port: servers and clients, many clients, again and again, until one dies.
#
# Usage: meet.sh MPIEXEC MEET
set -eu
# shellcheck source=test/tap.sh
. "$(cd "$(dirname "$0")/../.." && pwd)/tap.sh"

mpiexec=$1
meet=$2
unset PMI_FD PMI_RANK PMI_SIZE
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# jobs NAME: the commands after it, up to each "--", run as jobs at the same time; all succeed.
jobs_end() {
	local pid pids=() part=() ok=0 word

	rm -f "$dir/port"
	for word in "$@" --; do
		if [ "$word" = -- ]; then
			timeout -k 5 120 "${part[@]}" &
			pids+=($!)
			part=()
		else
			part+=("$word")
		fi
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || ok=1
	done
	return $ok
}

# clients N: so many jobs call one server.
clients() {
	local n=$1 all=("$mpiexec" -n 2 "$meet" serve "$dir/port" "$1")

	while [ "$n" -gt 0 ]; do
		all+=(-- "$mpiexec" -n $((n % 2 + 1)) "$meet" call "$dir/port")
		n=$((n - 1))
	done
	jobs_end "${all[@]}"
}

# A job whose other side is killed ends by itself, with an error: timeout(1) says 124 or more.
killed() {
	local server status=0

	rm -f "$dir/port"
	timeout -k 5 60 "$mpiexec" -n 1 "$meet" lose "$dir/port" 1 &
	server=$!
	timeout -k 5 60 "$mpiexec" -n 2 "$meet" lose "$dir/port" 0 >/dev/null 2>&1 || true
	wait "$server" || status=$?
	return $status
}

check 'a server and a client' clients 1
check 'processes without a launcher' jobs_end "$meet" serve "$dir/port" 1 -- "$meet" call "$dir/port"
check 'eight clients of one server' clients 8
check 'two jobs become one' jobs_end "$mpiexec" -n 2 "$meet" merge "$dir/port" 1 -- \
	"$mpiexec" -n 3 "$meet" merge "$dir/port" 0
check 'nothing stays of 50 connections' jobs_end "$mpiexec" -n 2 "$meet" again "$dir/port" 50 -- \
	"$mpiexec" -n 2 "$meet" calls "$dir/port" 50
check 'ports that are none' "$mpiexec" -n 2 "$meet" wrong
check 'jobs that end connected' jobs_end "$mpiexec" -n 2 "$meet" end "$dir/port" 1 -- \
	"$mpiexec" -n 2 "$meet" end "$dir/port" 0
# Succeeds if both jobs say that only shared memory leads from one to the other.
refused() {
	local text

	text=$(PTL_NAL=udp jobs_end "$mpiexec" -n 1 "$meet" serve "$dir/port" 1 -- \
		"$mpiexec" -n 1 "$meet" call "$dir/port" 2>&1) && return 1
	[ "$(grep -c 'connected through shared memory' <<<"$text")" -eq 2 ] && return
	echo "$text"
	return 1
}

# The owner of the port is killed while it is called.
owner_killed() {
	local owner status=0

	rm -f "$dir/port"
	"$meet" hold "$dir/port" &
	owner=$!
	timeout -k 5 60 "$mpiexec" -n 2 "$meet" dead "$dir/port" &
	while [ ! -e "$dir/port" ]; do :; done
	kill -9 $owner
	wait $! || status=$?
	wait $owner || true
	return $status
}

check 'the other side is killed' killed
check 'the owner of the port is killed' owner_killed
# shellcheck disable=SC2016 # the shell of the job expands
check 'strangers learn nothing, and keep nobody away' jobs_end "$mpiexec" -n 1 "$meet" serve "$dir/port" 1 -- \
	sh -c '"$0" stranger "$1" && exec "$0" call "$1"' "$meet" "$dir/port"
if PTL_NAL=udp timeout -k 5 60 "$meet" wrong >/dev/null 2>&1 || PTL_NAL=udp "$mpiexec" -n 1 "$meet" wrong; then
	check 'no network leads from job to job' refused
else
	tap_skip 'no network leads from job to job' 'there is no udp here'
fi
check 'a socket that two jobs have' "$meet" join
tap_done
