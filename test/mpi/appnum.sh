#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# MPI_APPNUM is the number of the program in the launcher's command line.
#
# Usage: appnum.sh MPIEXEC PROGRAM
set -eu
# shellcheck source=test/tap.sh
. "$(cd "$(dirname "$0")/.." && pwd)/tap.sh"

mpiexec=$1
program=$2
unset PMI_FD PMI_RANK PMI_SIZE

# Succeeds if the command prints the line $1.
prints() {
	local line

	line=$(timeout -k 5 60 "${@:2}") && [ "$line" = "$1" ] && return
	echo "not $1 but $line"
	return 1
}

check 'one process' prints 0 "$program"
check 'one program' prints '0 0' "$mpiexec" -n 2 "$program"
check 'three programs' prints '0 0 1 2 2' "$mpiexec" -n 2 "$program" : -n 1 "$program" : -n 2 "$program"
# shellcheck disable=SC2016 # the ranks' shells expand
check 'three programs that a script runs one after the other' prints $'0 0 1\n0 0 1\n0 0 1' "$mpiexec" \
	-n 2 sh -c '"$0" && "$0" && "$0"' "$program" : -n 1 sh -c '"$0" && "$0" && "$0"' "$program"
if command -v mpiexec.hydra >/dev/null; then
	check 'two programs under Hydra' prints '0 1 1' mpiexec.hydra -n 1 "$program" : -n 2 "$program"
else
	tap_skip 'two programs under Hydra' 'mpiexec.hydra is not installed'
fi
tap_done
