#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# dead.sh MPIEXEC PROGRAM [RANKS]: the program's cases in jobs of a few ranks, of which the last is killed. mpiexec --keep-going lets the others end and says, in the end, that one was killed.
mpiexec=$1
program=$2
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
n=0
[ $# -gt 2 ] || set -- "$@" 2 4 "3 threads"
shift 2
for job; do
	ranks=${job%% *}
	# shellcheck disable=SC2086 # no argument, or one
	"$mpiexec" --keep-going --timeout 50 -n $ranks "$program" ${job#"$ranks"} >"$out/tap" 2>"$out/err"
	status=$?
	sed -n "s/^\(#.*\)/\1/p" "$out/tap" "$out/err"
	while read -r line; do
		case $line in
		ok* | not*)
			n=$((n + 1))
			echo "$line" | sed "s/ok [0-9]* - \(.*\)/ok $n - \1, of $job/"
			;;
		esac
	done <"$out/tap"
	n=$((n + 1))
	if [ $status = 137 ] && grep -q '^1\.\.' "$out/tap" && grep -q 'killed by signal 9' "$out/err"; then
		echo "ok $n - a dead rank: --keep-going ends with its status, of $job"
	else
		echo "# status $status"
		sed 's/^/# /' "$out/err"
		echo "not ok $n - a dead rank: --keep-going ends with its status, of $job"
	fi
done
echo "1..$n"
