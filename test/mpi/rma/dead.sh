#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# dead.sh MPIEXEC PROGRAM WAY: the program's cases in a job of three ranks, of which the last is killed. mpiexec --keep-going lets the others end.
mpiexec=$1
program=$2
way=$3
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
"$mpiexec" --keep-going --timeout 100 -n 3 "$program" "$way" >"$out/tap" 2>"$out/err"
status=$?
sed 's/^/# /' "$out/err"
grep -v '^1\.\.' "$out/tap"
n=$(grep -c '^\(not \)\?ok' "$out/tap")
n=$((n + 1))
if [ $status = 137 ] && grep -q '^1\.\.' "$out/tap"; then
	echo "ok $n - a dead rank: the others end, $way"
else
	echo "# status $status"
	echo "not ok $n - a dead rank: the others end, $way"
fi
echo "1..$n"
