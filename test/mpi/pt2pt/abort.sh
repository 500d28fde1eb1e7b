#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# abort.sh MPIEXEC PROGRAM: MPI_Abort ends the job with its code and says who called it.
mpiexec=$1
program=$2
n=0
for code in 1 42 256; do
	n=$((n + 1))
	said=$("$mpiexec" --timeout 50 -n 3 "$program" abort $code 2>&1)
	status=$?
	want=$code
	[ $code = 256 ] && want=1 # a status has 8 bits, and must not be 0
	case $said in
	*"rank 2 of 3 called MPI_Abort(MPI_COMM_WORLD, $code)"*) who=1 ;;
	*) who=0 ;;
	esac
	if [ $status = $want ] && [ $who = 1 ]; then
		echo "ok $n - abort: code $code"
	else
		echo "# status $status: $said"
		echo "not ok $n - abort: code $code"
	fi
done
echo "1..$n"
