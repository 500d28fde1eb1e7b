#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# dp_links measures Directed Point over a link, and its verdict tells what is met, missed, and not measured. The figures
# themselves are not judged here.
# Usage: dp_links_test.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# verdict STATUS FACTOR MBYTES PATTERN...: the network formula says FACTOR of what was measured, and so much arrives
verdict() {
	local want=$1 status=0
	cat >"$dir/100M.json" <<-END
		{ "results": [
		{ "test": "message", "variant": "1500", "size": 1000000, "unit": "ns", "value": 1000 },
		{ "test": "predicted, network", "variant": "1500", "size": 1000000, "unit": "ns", "value": $2 },
		{ "test": "predicted, receiver", "variant": "1500", "size": 1000000, "unit": "ns", "value": 10 },
		{ "test": "bandwidth", "variant": "raw, flush 1", "size": 65536, "unit": "MB/s", "value": $3 } ] }
	END
	shift 3
	python3 "$here/lib/dp_links.py" udp "$dir/100M.json" >"$dir/said" || status=$?
	cat "$dir/said"
	echo "status $status"
	[ $status -eq "$want" ] || return 1
	for pattern; do
		grep -q -e "$pattern" "$dir/said" || return 1
	done
}
nothing() {
	local status=0
	echo '{ "results": [] }' >"$dir/1G.json"
	python3 "$here/lib/dp_links.py" udp "$dir/1G.json" || status=$?
	[ $status -eq 1 ]
}
# whatever the figures are: it measured
measures() {
	local status=0
	"$here/dp_links" --prefix "$build" --quick --only 1G >"$dir/out" 2>&1 || status=$?
	cat "$dir/out"
	[ $status -eq 0 ] || [ $status -eq 2 ] && grep -q 'network formula' "$dir/out"
}
refuses() {
	! "$here/dp_links" --prefix "$build" --only 10G 2>"$dir/said" && grep 'no link 10G' "$dir/said"
}

# 100 Mbit/s carry 92.07 by UDP, of which 97 % are 11.16 MB/s
check 'a prediction that is 14 % off, and 97 % of the rate, are met' verdict 0 1140 11.17 \
	'off by.*network formula .* met$' 'raw, flush 1.* met$'
check 'one that is 16 % off is missed' verdict 2 840 11.17 'off by.*network formula .* MISSED$' 'raw, flush 1.* met$'
check 'less than 97 % of the rate are missed' verdict 2 1001 11.15 'off by.* met$' 'raw, flush 1.* MISSED$'
check 'without figures it says so' nothing
check 'it refuses a link that there is not' refuses
status=0
why=$("$here/../test/net/cabled.sh" "$build/test/net/cable" '' true 2>&1) || status=$?
if [ $status -eq 77 ]; then
	tap_skip 'it measures' "$why"
else
	check 'it measures' measures
fi
tap_done
