#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The programs of `./dev bench`: all of ptlperf, then our MPI beside those installed here, speed
# first, then overlap.
# Usage: bench.sh BUILD_DIR [ptlperf options]
set -eu -o pipefail
if [ $# -lt 1 ] || [ "$1" = --help ]; then
	echo "usage: bench.sh BUILD_DIR [ptlperf options]"
	exit $(($# < 1 ? 2 : 0))
fi
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
results=$build/bench

"$build/bench/ptlperf/ptlperf" "$@" --json "$results/ptlperf.json" all
echo
"$here/mpi_compare" --prefix "$build" --json "$results/mpi_compare.json"
echo
"$here/comb/run" --prefix "$build" --json "$results/comb.json"
printf '\nall figures: %s\n' "$results"/{ptlperf,mpi_compare,comb}.json
