#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The examples of MX between processes that are started by hand.
# Usage: pairs.sh PINGPONG UPPERCASE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../../test/tap.sh"
pingpong=$1
uppercase=$2
log=$(mktemp)
server=

clean_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -f "$log"
}
trap clean_up EXIT

# start COMMAND...: a process that says where it is
start() {
	"$@" >"$log" 2>&1 &
	server=$!
	local deadline=$((SECONDS + 20))
	until grep -q '^at ' "$log"; do
		kill -0 "$server" 2>/dev/null || return
		[ "$SECONDS" -lt "$deadline" ] || return
		sleep 0.02
	done
	read -r host id < <(sed -n 's/^at //p' "$log")
}
# not within check, whose subshell has no children to wait for
end() {
	status=0
	wait "$server" || status=$?
	server=
}
ended_well() {
	cat "$log"
	[ "$status" -eq 0 ]
}
answers() {
	[ "$("$uppercase" "$host" "$id" "$1")" = "$2" ]
}
many_at_once() {
	local text clients=() failed=0
	for text in one two three four; do
		answers "$text" "${text^^}" &
		clients+=($!)
	done
	for client in "${clients[@]}"; do
		wait "$client" || failed=1
	done
	return "$failed"
}
# nobody asks for an id as high as that, and no free one is looked for there
fails_alone() {
	local result=0
	timeout 30 "$uppercase" "$host" 254 'anybody?' || result=$?
	[ "$result" -eq 1 ]
}

start "$pingpong" || { cat "$log" >&2; exit 1; }
check "a process connects to another and plays ping-pong" "$pingpong" "$host" "$id"
end
check "the other one ends well" ended_well

start "$uppercase" 6 || { cat "$log" >&2; exit 1; }
check "a client gets its answer" answers 'hello, server' 'HELLO, SERVER'
check "an empty text has an empty answer" answers '' ''
check "clients at once get theirs" many_at_once
end
check "the server ends after the requests it was to serve" ended_well
check "a client without a server fails and says so" fails_alone
tap_done
