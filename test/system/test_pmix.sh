#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Ranks under PMIx launchers: Open MPI's mpirun and, where it is installed, prterun.
# Usage: test_pmix.sh RT_JOB PORTALS_INFO MPI_HELLO MPIEXEC
# shellcheck disable=SC2016 # the shells of ranks expand
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

rt_job=$1
info=$2
hello=$3
mpiexec=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset "${!PMI_@}" "${!PMIX_@}" "${!OMPI_@}" "${!PTL_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR=$dir # of the launcher's sessions

# run COMMAND...: under a limit; leaves status, $dir/out, $dir/err.
run() {
	status=0
	timeout -k 5 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}
need() {
	"$@" && return
	echo "not so: $*"
	echo "status ${status-none yet}; stdout:"
	cat "$dir/out"
	echo "stderr:"
	cat "$dir/err"
	exit 1
}
has_udp() { "$info" --transports | grep '^  udp ' | grep -qv 'not built'; }
status_is() { [ "$status" -eq "$1" ]; }
out_lines() { [ "$(grep -c -- "$2" "$dir/out")" -eq "$1" ]; }

start() {
	local ranks=$1
	shift
	run "${launcher[@]}" -n "$ranks" "$@"
}
does() {
	start "$1" "$rt_job" "$2" ${3+"$3"}
	need status_is 0
	need out_lines "$1" " done\$"
}
same_job() {
	start 3 "$rt_job" whoami
	need status_is 0
	need out_lines 3 'of 3 kind 2 job'
	need [ "$(sed 's/.* job //' "$dir/out" | sort -u | wc -l)" -eq 1 ]
	need [ "$(sed 's/ of .*//' "$dir/out" | sort -u | wc -l)" -eq 3 ]
}
aborts() {
	start 3 "$rt_job" abort 2 42
	need status_is 42
	need grep -q 'this is the reason' "$dir/err"
}
hides_secrets() {
	PTL_PMI_DEBUG=1 does 2 secret
	need [ "$(grep -c '(secret)$' "$dir/err")" -ge 3 ]
	need [ "$(grep -c hush "$dir/err")" -eq 0 ]
}
# the others would wait for ever
gives_up() {
	start 3 "$rt_job" give_up 1 7
	need status_is 7
}
status_kept() {
	start 3 "$rt_job" late 1 5
	need status_is 5
}
# a rank that runs a program is still a rank, and the program is none
nested() {
	start 2 "$rt_job" nested '%s whoami'
	need status_is 0
	need out_lines 2 'nested done$'
	need out_lines 1 'of 1 kind 0 job alone'
}
# a launcher inside a rank starts a job of its own
nested_job() {
	start 2 sh -c '[ $PMIX_RANK -ne 1 ] || exec "$0" -n 3 "$1" whoami' "$mpiexec" "$rt_job"
	need out_lines 3 'of 3 kind 2 job postern_'
}
nested_hydra() {
	start 2 sh -c '[ $PMIX_RANK -ne 1 ] || exec mpiexec.hydra -n 3 "$0" whoami' "$rt_job"
	need out_lines 3 'of 3 kind 2 job kvs_'
}
# what a rank of that job starts has the variables of both
nested_twice() {
	start 2 sh -c '[ $PMIX_RANK -ne 1 ] || exec "$@"' sh "$@" -n 2 "$rt_job" nested '%s whoami'
	need status_is 0
	need out_lines 2 'nested done$'
	need out_lines 1 'of 1 kind 0 job alone'
}
two_programs() {
	run "${launcher[@]}" -n 1 "$info" --launcher : -n 2 "$info" --launcher
	need status_is 0
	need out_lines 3 '^  pmix     used: PMIX_NAMESPACE is set'
	need out_lines 3 '^  pmi2     not seen: PMI_FD is not set'
	need out_lines 1 "^  rank     2 of 3, of a launcher's job; on this host 2 of 3"
}
mpi_runs() {
	start 4 "$@" "$hello"
	need status_is 0
	need grep -q 'the ranks add up to 6' "$dir/out"
}
no_libpmix() {
	: >"$dir/libpmix.so.2"
	start 3 env "LD_LIBRARY_PATH=$dir" "$hello"
	need status_is 1
	# the cause, and the function that failed for it
	need [ "$(grep -c 'libpmix cannot be loaded' "$dir/err")" -ge 1 ]
	need [ "$(grep -c 'libpmix cannot be loaded' "$dir/err")" -le 2 ]
	rm "$dir/libpmix.so.2"
}
other_ways() {
	PTL_LAUNCHER=pmi1 start 2 "$rt_job" whoami
	need status_is 98
	need grep -q 'PTL_LAUNCHER=pmi1 asks for' "$dir/err"
	PTL_LAUNCHER=none start 2 "$rt_job" whoami
	need status_is 0
	need out_lines 2 'of 1 kind 0 job alone'
}

all_cases() {
	check "$name: one job" same_job
	check "$name: put, fence, get by 4 ranks" does 4 fence 3
	check "$name: put, fence, get by 16 ranks" does 16 fence 2
	check "$name: alone in a job" does 1 fence 2
	check "$name: values of all lengths and bytes" does 3 values
	check "$name: several threads of a rank ask at once" does 3 threads
	check "$name: a forked child keeps off the connection" does 3 fork
	check "$name: what a rank starts is no rank" nested
	check "$name: our mpiexec in a rank" nested_job
	check "$name: what a rank of it starts is no rank, too" nested_twice "$mpiexec"
	check "$name: PTL_PMI_DEBUG shows no secret" hides_secrets
	check "$name: an exit status after leaving the job is kept" status_kept
	check "$name: an exit status before leaving the job ends it" gives_up
	check "$name: an abort with its code" aborts
	check "$name: portals-info tells what was found" two_programs
	check "$name: MPI" mpi_runs
	if has_udp; then
		check "$name: MPI over UDP, with the job's secret" mpi_runs env PTL_NAL=udp
	else
		tap_skip "$name: MPI over UDP, with the job's secret" 'Postern was built without udp'
	fi
	check "$name: no libpmix" no_libpmix
	check "$name: PTL_LAUNCHER decides" other_ways
	if command -v mpiexec.hydra >/dev/null; then
		check "$name: Hydra in a rank" nested_hydra
		check "$name: what a rank of it starts is no rank" nested_twice mpiexec.hydra
	else
		tap_skip "$name: Hydra in a rank" 'no mpiexec.hydra; install the package mpich'
	fi
}

if PTL_LAUNCHER=pmix PMIX_NAMESPACE=none PMIX_RANK=0 "$info" --launcher 2>&1 | grep -q 'built without'; then
	tap_skip 'PMIx launchers' 'Postern was built without PMIx; install libpmix-dev'
else
	ran=
	if command -v mpirun.openmpi >/dev/null; then
		ran=1 name=mpirun launcher=(mpirun.openmpi --oversubscribe)
		all_cases
	fi
	if command -v prterun >/dev/null; then
		ran=1 name=prterun launcher=(prterun --map-by :OVERSUBSCRIBE)
		all_cases
	fi
	[ -n "$ran" ] || tap_skip 'PMIx launchers' 'no mpirun.openmpi and no prterun; install the package openmpi-bin'
fi
tap_done
