#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# A process that is killed while it is being written to and read from by long messages, and others in its place: what is under
# way fails, and what comes after goes by a new connection. Usage: killed.sh OUTAGE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

program=$1
pid=$((61000 + $$ % 4500)) # well known to these only: tests may run side by side; no port of the kernel
dir=$(mktemp -d)
server='' client=''
clean_up() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
	[ -z "$client" ] || kill -9 "$client" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean_up EXIT

serve() {
	: >"$dir/served" # not only when the process is there: what the one before it said is not its
	"$program" serve "$pid" >"$dir/served" 2>&1 </dev/null &
	server=$!
}
talks_to_it() {
	local deadline=$((SECONDS + 60))
	until grep -q hears "$dir/served" || [ $SECONDS -ge $deadline ]; do
		kill -0 "$client" 2>/dev/null || break
		sleep 0.05
	done
	cat "$dir/said" "$dir/served"
	grep -q hears "$dir/served"
}
# A process that is killed between two operations is missed by neither.
ended_well() {
	cat "$dir/said" "$dir/served"
	echo "status $client_status and $server_status"
	[ "$client_status" -eq 0 ] && [ "$server_status" -eq 0 ] && grep -q fails "$dir/said"
}

: >"$dir/said"
serve
"$program" talk "$pid" "$dir/over" >"$dir/said" 2>&1 </dev/null &
client=$!
check 'messages go to and fro' talks_to_it
for round in 2 3 4; do
	kill -9 $server
	wait $server 2>/dev/null || true
	serve
	check "they do again with process $round" talks_to_it
done
: >"$dir/over"
client_status=0 server_status=0
wait $client || client_status=$?
wait $server || server_status=$?
client='' server=''
check 'deaths were noticed, and both end well' ended_well
tap_done
