#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# killed.sh MPIEXEC PROGRAM RANKS JOBS: jobs of which all ranks but two are killed, one after the other, at moments that
# differ from job to job. The two go on.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

job() { # SEED
	local status=0 output
	output=$("$1" --keep-going --timeout 120 -n "$3" "$2" "$4" 2>&1) || status=$?
	printf '%s\n' "$output"
	[ "$status" = 137 ] && [ "$(grep -c '^rank [01]: went on$' <<<"$output")" = 2 ]
}
for seed in $(seq "$4"); do
	check "two of $3 ranks go on when the others are killed, seed $seed" job "$1" "$2" "$3" "$seed"
done

tap_done
