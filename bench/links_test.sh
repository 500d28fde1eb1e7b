#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# links measures each way over a link, says which targets are met, and its exit status tells that from what could not
# be measured. The figures themselves are not judged here.
# Usage: links_test.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The verdict on such figures (on standard input): verdict STATUS LINE-PATTERN...
verdict() {
	local want=$1 status=0
	shift
	cat >"$dir/figures"
	python3 "$here/lib/links.py" "$dir/figures" >"$dir/said" || status=$?
	cat "$dir/said"
	echo "status $status"
	[ $status -eq "$want" ] || return 1
	for pattern; do
		grep -q -e "$pattern" "$dir/said" || return 1
	done
}
# 100 Mbit/s carry 92.07 by UDP, of which 97 % are 89.31; the median of the rounds counts
all_met() {
	verdict 0 '^100M *udp .* 89.4 *97.1%' '^100M *udp, stream.* 0.97 *at least 0.97  met$' \
		'^lossy2 .* 400.0 .* 130.0 .* 3.08 *at least 3.00  met$' '^veth .*64 bytes.*TCP .* 0.75 .*at most 0.80  met$' <<-END
		100M udp stream 89.4
		100M udp stream 20
		100M udp stream 89.9
		lossy2 udp stream 400
		lossy2 openmpi stream 130
		veth udp trip 3
		veth openmpi trip 4
	END
}
each_missed() {
	verdict 2 '^1G *udp, .* 0.97 .* met$' '^1G *eth, .* MISSED$' '^lossy .* 2.99 .*MISSED$' \
		'^veth .*bare UDP .* 1.26 .*MISSED$' '^veth .*1 MiB.* 0.89 .*MISSED$' '^plain *eth, .* 1.19 .*MISSED$' <<-END
		1G udp stream 895
		1G eth stream 900
		lossy udp stream 299
		lossy openmpi stream 100
		veth udp bare-trip 1
		veth udp portals-trip 1.26
		veth udp bare 100
		veth udp portals 89
		plain eth stream 119
		plain openmpi stream 100
	END
}
nothing_beside() {
	verdict 0 '^veth *udp *50.0 *- *- *- *-$' <<-END && ! grep -q -e 'target' -e 'met' "$dir/said"
		veth udp stream 50
	END
}
failed() {
	verdict 1 '^veth *eth *failed' '^2 measurements failed' '^veth *udp, stream.* 0.50 .*MISSED$' <<-END
		veth udp stream 50
		veth udp stream -
		veth eth stream -
		veth openmpi stream 100
	END
}
really() {
	local status=0
	"$here/links" --prefix "$build" --only veth --nals udp --rounds 1 --seconds 1 >"$dir/said" 2>"$dir/errors" || status=$?
	cat "$dir/said" "$dir/errors"
	echo "status $status"
	[ $status -ne 1 ] && grep -q '^veth *udp *[0-9.]* .* [0-9.]*$' "$dir/said" &&
		grep -q '^veth *bare UDP *[0-9.]* .* [0-9.]*$' "$dir/said" && grep -q '^veth .*met$\|^veth .*MISSED$' "$dir/said"
}

check "targets that are met are said to be, and the exit status is 0" all_met
check "each target that is missed is named, and the exit status is 2" each_missed
check "what there is nothing beside is not judged" nothing_beside
check "what could not be measured makes the exit status 1" failed
if [ -x "$build/test/net/cable" ] && unshare -rnm ip link add type veth 2>/dev/null; then
	check "MPI, Portals and bare sockets over a virtual link are measured" really
else
	tap_skip "MPI, Portals and bare sockets over a virtual link are measured" \
		'virtual links are not allowed here, or the build is without tests'
fi
tap_done
