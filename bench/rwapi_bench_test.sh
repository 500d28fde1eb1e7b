#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# A short run of rwapi_bench: it prints a table and writes JSON with all runs, whose numbers agree.
# Usage: rwapi_bench_test.sh RWAPI_BENCH MPIEXEC RANKS TEST...
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
bench=$1
mpiexec=$2
ranks=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

runs() {
	"$mpiexec" --timeout 100 -n "$ranks" "$bench" --runs 3 --time 0.005 --sizes 1,4k,200000 --json "$dir/json" \
		"$@" >"$dir/out" && cat "$dir/out"
}
has_titles() {
	local name
	for name; do
		grep -q "^$name: " "$dir/out" || return
	done
}
# Every test has results, each of three runs, and the mean is theirs.
agrees() {
	python3 - "$dir/json" "$@" <<'END'
import json, sys
results = json.load(open(sys.argv[1]))['results']
for name in sys.argv[2:]:
    assert any(r['test'] == name for r in results), name
for r in results:
    assert len(r['run_ns']) == 3 and all(ns > 0 for ns in r['run_ns']), r
    assert abs(sum(r['run_ns']) / 3 - r['ns']) < 0.02 and r['ns_half'] >= 0, r
END
}
refuses() {
	local status=0
	"$bench" "$@" >"$dir/refused" 2>&1 || status=$?
	cat "$dir/refused"
	[ "$status" = 2 ]
}

check "it runs" runs "$@"
check "it prints a table for each test" has_titles "$@"
check "the JSON has every run" agrees "$@"
check "it refuses a size of 0" refuses --sizes 0
check "it refuses a test that is none" refuses nothing

tap_done
