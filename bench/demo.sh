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
