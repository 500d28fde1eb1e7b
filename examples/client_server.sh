#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Client and server find each other without a launcher; a client without a server says so.
# Usage: client_server.sh CLIENT SERVER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
client=$1
server=$2
pid=$((61000 + $$ % 4500)) # well known to these two only: tests may run side by side; no port of the kernel
log=$(mktemp)
server_process=

clean_up() {
	[ -z "$server_process" ] || kill "$server_process" 2>/dev/null || true
	rm -f "$log"
}
trap clean_up EXIT

start_server() {
	"$server" "$pid" 3 >"$log" 2>&1 &
	server_process=$!
	local deadline=$((SECONDS + 20))
	until grep -q '^serving at ' "$log"; do
		kill -0 "$server_process" 2>/dev/null || return
		[ "$SECONDS" -lt "$deadline" ] || return
	done
}
address() {
	sed -n 's/^serving at //p' "$log"
}
answers() {
	[ "$("$client" "$(address)" "$1")" = "$2" ]
}
server_ended_well() {
	cat "$log"
	echo "status $server_status"
	[ "$server_status" -eq 0 ] && [ "$(grep -c '^request of ' "$log")" -eq 3 ]
}
two_at_once() {
	local first status=0
	answers 'left' 'LEFT' &
	first=$!
	answers 'right' 'RIGHT' || status=1
	wait "$first" || status=1
	return "$status"
}
fails_without_server() {
	local status=0
	timeout 30 "$client" "$(address)" 'anybody?' || status=$?
	[ "$status" -eq 1 ]
}

start_server || { cat "$log" >&2; exit 1; }
check "a client gets its answer" answers 'hello, server' 'HELLO, SERVER'
check "two clients at once get theirs" two_at_once
# not within check, whose subshell has no children to wait for
server_status=0
wait "$server_process" || server_status=$?
server_process=
check "the server ends after the requests it was to serve" server_ended_well
check "a client without a server fails and says so" fails_without_server
tap_done
