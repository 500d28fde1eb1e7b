#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The end of `./dev demo`. Two ranks exchange data and check it. Then come the speed of that beside
# the machine's own, and its progress while the target computes. An MPI program follows. Last comes
# how far our MPI and the others on this machine let a program work while messages arrive.
# Usage: demo.sh BUILD_DIR
set -eu -o pipefail
if [ $# -lt 1 ] || [ "$1" = --help ]; then
	echo "usage: demo.sh BUILD_DIR"
	exit $(($# < 1 ? 2 : 0))
fi
build=$1
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

heading() {
	printf '\n-- %s\n\n' "$1"
}

heading "Two ranks: PtlPut into the other's memory, PtlGet from there, both checked"
echo "\$ mpiexec -n 2 hello_put"
failed=
"$build/tools/mpiexec/mpiexec" -n 2 "$build/examples/hello_put" || failed="the two ranks"

heading "How fast: latency and bandwidth beside the bare machine, same two processes, same run"
"$build/bench/ptlperf/ptlperf" --quick floor latency bandwidth rate || failed="$failed the measurement"

heading "Application bypass: data arrives while the target computes"
"$build/bench/ptlperf/ptlperf" bypass || failed="$failed the bypass"

heading "An MPI program, compiled with mpicc: a solver that exchanges borders and checks the result"
echo "\$ mpicc -O2 -o halo halo.c -lm && mpiexec -n 4 ./halo 200"
"$build/tools/mpicc/mpicc" -O2 -o "$dir/halo" "$here/../examples/mpi/halo.c" -lm
"$build/tools/mpiexec/mpiexec" -n 4 "$dir/halo" 200 || failed="$failed the solver"

heading "MX, RWAPI and Directed Point: programs of three older systems, a line of each"
# line_of PATTERN WORDS COMMAND...: the first line of its output that fits, below the words
line_of() {
	local pattern=$1
	echo "\$ $2"
	shift 2
	if ! "$@" >"$dir/said" 2>&1 || ! grep -m 1 -E "$pattern" "$dir/said"; then
		cat "$dir/said"
		return 1
	fi
}
mx_line() {
	local status=0 receiver
	"$build/tools/mx/mx_pingpong" >/dev/null &
	receiver=$!
	line_of '^ +8 ' 'mx_pingpong & mx_pingpong -d localhost -S 8 -E 9     # bytes, us, MB/s' \
		"$build/tools/mx/mx_pingpong" -d localhost -S 8 -E 9 || status=$?
	[ $status -eq 0 ] || kill $receiver
	wait $receiver || status=$?
	return $status
}
mx_line || failed="$failed MX"
line_of ' write +4096 ' 'mpiexec -n 2 rwapi_bench --quick -s 4k burst     # bytes, ns and +-, MB/s and +-' \
	"$build/tools/mpiexec/mpiexec" -n 2 "$build/bench/rwapi_bench/rwapi_bench" --quick -s 4k burst ||
	failed="$failed RWAPI"
line_of '^ +512 ' 'dp_bench --quick latency     # bytes, us: puts, spinning, x puts, asleep, poll+dp_read, poll+read' \
	"$build/bench/dp/dp_bench" --quick latency || failed="$failed Directed Point"

heading "COMB: what the MPIs here leave of the processor while ten messages of 100 KiB arrive"
echo "\$ bench/comb/run --method pww --size 100K"
"$here/comb/run" --prefix "$build" --method pww --size 100K --tests 0 --time 50 --rounds 3 ||
	echo "(one of them could not be measured)"

heading "All of it as a picture: a short run beside the other MPIs here, too short for good figures"
if command -v gnuplot >/dev/null; then
	echo "\$ bench/report --quick"
	"$here/report" --prefix "$build" --quick || echo "(one of them could not be measured)"
	printf '\nthe picture: %s\n' "$build/report/index.html"
else
	echo "(gnuplot is not installed; ./dev report installs it)"
fi

if [ -n "$failed" ]; then
	printf '\nIt does not work here: %s failed; the message above says why\n' "$failed"
	exit 1
fi
printf '\nIt works here: two ranks exchanged data, a target computed while data came, and an MPI program had the right result\n'
