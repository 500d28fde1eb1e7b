#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Both ends of PMI-1 against MPICH: our client under Hydra's mpiexec, and an MPICH program under our
# mpiexec. Usage: test_hydra.sh MPIEXEC RT_JOB MPICH_JOB_SOURCE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
rt_job=$2
source=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID "${!PTL_@}"

# run COMMAND...: under a limit; leaves status, $dir/out, $dir/err.
run() {
	status=0
	timeout -k 5 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}

# need COMMAND...: the case fails, and shows what was seen, unless this succeeds.
need() {
	"$@" && return
	echo "not so: $*"
	echo "status ${status-none yet}; stdout:"
	cat "$dir/out"
	echo "stderr:"
	cat "$dir/err"
	exit 1
}
status_is() { [ "$status" -eq "$1" ]; }
out_lines() { [ "$(grep -c -- "$2" "$dir/out")" -eq "$1" ]; }

eventually() {
	local deadline=$((SECONDS + 20))
	until "$@"; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.02
	done
}
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }

# ---- our client under Hydra ----------------------------------------------------------------------

hydra() {
	local ranks=$1
	shift
	run mpiexec.hydra -n "$ranks" "$rt_job" "$@"
}
does() {
	hydra "$1" "$2" ${3+"$3"}
	need status_is 0
	need out_lines "$1" " done\$"
}
same_job() {
	hydra 3 whoami
	need status_is 0
	need out_lines 3 'of 3 kind 2 job'
	need [ "$(sed 's/.* job //' "$dir/out" | sort -u | wc -l)" -eq 1 ]
}
status_kept() {
	hydra 3 late 1 5
	need status_is 5
	need out_lines 2 'at its end'
}
# the others would wait for ever; the status is that of the rank or of the signal for the others
gives_up() {
	hydra 3 give_up 1 7
	need [ "$status" -ne 0 ]
	need [ "$status" -ne 124 ]
}
aborts() {
	hydra 3 abort 2 42
	need status_is 42
}
hides_secrets() {
	PTL_PMI_DEBUG=1 does 2 secret
	need [ "$(grep -c '(secret)$' "$dir/err")" -ge 3 ]
	need [ "$(grep -c hush "$dir/err")" -eq 0 ]
}
by_pmi2() {
	export PTL_LAUNCHER=pmi2
	same_job
	does 4 fence 3
	does 3 values
	does 3 threads
	does 3 fork
	hides_secrets
	status_kept
	gives_up
}
launcher_dies() {
	: >"$dir/out"
	: >"$dir/ranks"
	mpiexec.hydra -n 3 "$rt_job" lose >"$dir/out" 2>"$dir/err" </dev/null &
	launcher=$!
	# whatever becomes of the case, nothing of the job stays
	trap 'kill -9 "$launcher" ${proxy-} $(cat "$dir/ranks") 2>/dev/null || true' EXIT
	need eventually out_lines 1 waiting
	proxy=$(pgrep -P "$launcher" hydra_pmi_proxy)
	pgrep -P "$proxy" >"$dir/ranks"
	need [ "$(wc -l <"$dir/ranks")" -eq 3 ]
	kill -9 "$launcher" "$proxy"
	wait "$launcher" || true
	# Rank 0 does not look at its launcher; the others do, in a fence. The proxy may have ended rank 0
	# before it was killed itself.
	need eventually one_left_at_most
}
one_left_at_most() {
	local left=0 pid
	while read -r pid; do
		gone "$pid" || left=$((left + 1))
	done <"$dir/ranks"
	[ "$left" -le 1 ]
}
if command -v mpiexec.hydra >/dev/null; then
	check 'Hydra: one job' same_job
	check 'Hydra: put, fence, get by 4 ranks' does 4 fence 3
	check 'Hydra: put, fence, get by 24 ranks' does 24 fence 2
	check 'Hydra: alone in a job' does 1 fence 2
	check 'Hydra: values of all lengths and bytes' does 3 values
	check 'Hydra: several threads of a rank ask at once' does 3 threads
	check 'Hydra: a forked child keeps off the connection' does 3 fork
	check 'Hydra: PTL_PMI_DEBUG shows no secret' hides_secrets
	check 'Hydra: an exit status after leaving the job ends nothing' status_kept
	check 'Hydra: an exit status before leaving the job ends it' gives_up
	check 'Hydra: an abort with its code' aborts
	check 'Hydra: its death ends a fence' launcher_dies
	check 'Hydra: all of this by PMI-2' by_pmi2
else
	tap_skip 'our client under Hydra' 'no mpiexec.hydra; install the package mpich'
fi

# ---- an MPICH program under our mpiexec ----------------------------------------------------------

mpich_compile() {
	mpicc.mpich -o "$dir/job" "$source"
}
mpich_sums() {
	run "$mpiexec" -n 4 "$dir/job"
	need status_is 0
	need out_lines 4 'of 4: sum 6$'
}
mpich_aborts() {
	run "$mpiexec" -n 3 "$dir/job" 42
	need status_is 42
	need grep -q 'rank 2 .* aborted the job with code 42' "$dir/err"
}
if command -v mpicc.mpich >/dev/null && mpich_compile 2>"$dir/err"; then
	check 'an MPICH program under our mpiexec' mpich_sums
	check 'its abort' mpich_aborts
else
	tap_skip 'an MPICH program under our mpiexec' 'no working mpicc.mpich; install the package libmpich-dev'
fi

tap_done
