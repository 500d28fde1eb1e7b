#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# dp_bench measures something in every test, alone and in a job, and refuses what it does not know. The figures
# themselves are not judged here. Usage: dp_bench_test.sh DP_BENCH MPIEXEC PID [some]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
dp_bench=$1
mpiexec=$2
export PTL_DP_PID=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# figures JSON TEST...: each has some, and all of their times are there
figures() {
	python3 - "$@" <<-'END'
		import json, sys
		results = json.load(open(sys.argv[1]))['results']
		for test in sys.argv[2:]:
		    values = [r['value'] for r in results if r['test'] == test]
		    print(test, values)
		    if not values or max(values) <= 0:
		        sys.exit(1)
	END
}
all_tests() {
	timeout 240 "$dp_bench" --quick --no-pin --rounds 50 --json "$dir/all.json" &&
		figures "$dir/all.json" latency parameter 'predicted, network' 'predicted, receiver' message sockets bandwidth \
			bidirectional endpoints
}
some_tests() {
	timeout 120 "$dp_bench" --quick --no-pin --rounds 20 --json "$dir/some.json" latency sockets endpoints memory &&
		figures "$dir/some.json" latency sockets endpoints
}
in_a_job() {
	timeout 120 "$mpiexec" -n 2 "$dp_bench" --quick --no-pin --rounds 20 --json "$dir/job.json" endpoints &&
		figures "$dir/job.json" endpoints
}
refuses() {
	! "$dp_bench" no-such-test
}
if [ "${4-}" = some ]; then
	check "it measures some things" some_tests
else
	check "it measures everything" all_tests
fi
check "it measures in a job" in_a_job
check "it refuses a test that there is not" refuses

tap_done
