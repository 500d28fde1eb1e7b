#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The error text that a user sees: who, in which function, on which communicator, why; and that the
# job ends.
# Usage: errors.sh MPIEXEC PROGRAM SOURCE_ROOT
set -u
mpiexec=$1 program=$2
. "$3/test/tap.sh"
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# job KIND: three ranks, of which rank 1 makes the error; the exit status is the job's.
job() {
	timeout 60 "$mpiexec" -n 3 "$program" "$1" >"$out" 2>&1
}

# ends KIND PATTERN: the job fails, and a line says this.
ends() {
	if job "$1"; then
		echo "the job went on:"
		cat "$out"
		return 1
	fi
	says "$2"
}

# goes_on KIND PATTERN
goes_on() {
	job "$1" || { echo "the job failed:"; cat "$out"; return 1; }
	says "$2"
}

says() {
	grep -Eq "$1" "$out" || { echo "wanted: $1"; cat "$out"; return 1; }
}

check "a fatal error tells rank, function, communicator and cause" \
	ends send 'rank 1 of 3: MPI_Send on a communicator of 3 ranks \(context [0-9]+\): .*tag.*-5'
check "a communicator is called by its name" \
	ends named 'rank 1 of 3: MPI_Send on solver grid: .*-5'
check "errors without a communicator are fatal, too" ends type 'rank 1 of 3: MPI_Type_contiguous'
check "MPI_ERRORS_ABORT ends the job" ends abort 'rank 1 of 3: MPI_Send on'
check "MPI_Comm_call_errhandler runs the handler in force" \
	ends call 'rank 1 of 3: MPI_Comm_call_errhandler on .*no space'
check "MPI_ERRORS_RETURN returns the class" goes_on return '^returned 4$'
check "a handler on MPI_COMM_WORLD serves errors without a communicator" \
	goes_on return-world '^returned 3$'
check "a handler of the program's gets communicator and code" \
	goes_on handler '^handler: watched, class MPI_ERR_TAG$'
said_once() {
	PTL_SHM_LONG=nonsense goes_on return 'PTL_SHM_LONG="nonsense" is not one of' &&
		[ "$(grep -c nonsense "$out")" -eq 3 ]
}
check "a setting that cannot be used is said once by each rank" said_once
tap_done
