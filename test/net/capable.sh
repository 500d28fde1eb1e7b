#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Ethernet frames need CAP_NET_RAW and no other capability: processes that have it alone work over a wire as they should;
# processes that have all others do not, and are told which one is missing.
# Usage: capable.sh PORTALS-INFO PROGRAM [ARG...]
#        capable.sh --interfaces INTERFACES CAPABILITIES COMMAND... by wire.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)

# by wire.sh, with all capabilities of a namespace
if [ "$1" = --interfaces ]; then
	export WIRE_INTERFACES=$2
	set -- --bounding-set "$3" --inh-caps "$3" -- "${@:4}"
	exec setpriv "$@"
fi
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

info=$1
shift
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}
command -v setpriv >/dev/null || skip_all 'setpriv(1) is not installed'
raw_only=-all,+net_raw
all_but_raw=-net_raw
wired() { # CAPABILITIES COMMAND...
	"$here/wire.sh" 1500 "$here/capable.sh" "$@" 2>&1
}
why=$(wired "$raw_only" true) || skip_all "capabilities cannot be given up here: $why"
[[ $why != *SKIP* ]] || skip_all "${why#*SKIP }"

# by the kernel's numbers CAP_NET_RAW is 13
is_raw_only() {
	wired "$raw_only" grep CapEff /proc/self/status | tee /dev/stderr | grep -q '[[:space:]]0*2000$'
}
as_a_test() { # CAPABILITIES PROGRAM [ARG...]
	local caps=$1
	shift
	# shellcheck disable=SC2016 # where it runs
	wired "$caps" sh -c 'program=$1; shift; exec "$program" --interfaces "$WIRE_INTERFACES" "$@"' sh "$@"
}
works() {
	local out
	out=$(as_a_test "$@") || { echo "$out"; return 1; }
	grep -q '^ok ' <<<"$out" && ! grep -q '^not ok ' <<<"$out"
}
says() { # TEXT COMMAND...: whether or not it succeeds
	local text=$1 out
	shift
	out=$("$@") || true
	echo "$out"
	grep -q "$text" <<<"$out"
}
fails() {
	! works "$@"
}

export PTL_NAL=eth
missing='packet sockets need CAP_NET_RAW'
check 'there is one capability left' is_raw_only
check 'frames with CAP_NET_RAW alone' works "$raw_only" "$@"
check 'no frames with all others' fails "$all_but_raw" "$@"
check 'a program is told which one is missing' says "$missing" as_a_test "$all_but_raw" "$@"
check 'portals-info says which one is missing' says "$missing" wired "$all_but_raw" "$info"
tap_done
