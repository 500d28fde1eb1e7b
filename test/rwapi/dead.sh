#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# dead.sh MPIEXEC PROGRAM RANKS: the program's cases in jobs whose last rank is killed, or exits without
# rwapi_finalize. mpiexec --keep-going lets the others end.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
mpiexec=$1
program=$2
ranks=$3

# job HOW STATUS: the job ends with this status, and rank 0 has passed all its cases
job() {
	local status=0 output
	output=$("$mpiexec" --keep-going --timeout 60 -n "$ranks" "$program" "$1" 2>&1) || status=$?
	printf '%s\n' "$output"
	[ "$status" = "$2" ] && grep -q '^1\.\.4$' <<<"$output" && [ "$(grep -c '^ok' <<<"$output")" = 4 ]
}

check "a rank is killed, of $ranks" job kill 137
check "a rank exits without rwapi_finalize, of $ranks" job exit 0

tap_done
