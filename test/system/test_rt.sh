#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Discovery without a working launcher: what a process takes itself for, and what it says when it
# cannot tell. Usage: test_rt.sh RT_JOB MUTE_PMIX [silent]: with it that of a launcher without answers, alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

rt_job=$1
mute_pmix=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}" "${!PALS_@}" "${!OMPI_@}" "${!PTL_@}"

# run [NAME=VALUE...] -- WHAT [ARG...]: leaves status, out, err.
run() {
	local env=()
	while [ "$1" != -- ]; do
		env+=("$1")
		shift
	done
	shift
	status=0
	out=$(env "${env[@]}" timeout 100 "$rt_job" "$@" 2>"$dir/err" </dev/null) || status=$?
	err=$(cat "$dir/err")
}
need() {
	"$@" && return
	printf 'not so: %s\nstatus %s\nstdout: %s\nstderr: %s\n' "$*" "$status" "$out" "$err"
	exit 1
}

alone() {
	run "$@" -- whoami
	need [ "$status" -eq 0 ]
	need grep -q '^rank 0 of 1 kind 0 job alone-' <<<"$out"
	need [ -z "$err" ]
}
alone_does() {
	run -- "$@"
	need [ "$status" -eq 0 ]
	need grep -q ' done$' <<<"$out"
}
different_alone() {
	local first
	run -- whoami
	first=$out
	run -- whoami
	need [ "$first" != "$out" ]
}
by_env() {
	run "$@" PTL_MY_RID=1 PTL_NIDMAP=167772161:0xa000002:10.0.0.3 PTL_PIDMAP=100:101:0x66: -- whoami
	need [ "$status" -eq 0 ]
	need grep -q '^rank 1 of 3 kind 1 job env-' <<<"$out"
	need [ -z "$err" ]
	local first=${out#rank 1}
	run PTL_MY_RID=2 PTL_NIDMAP=10.0.0.1:10.0.0.2:10.0.0.3 PTL_PIDMAP=100:101:102 -- whoami
	need [ "${out#rank 2}" = "$first" ]
}
no_fence_by_env() {
	run PTL_MY_RID=0 PTL_NIDMAP=1:2 PTL_PIDMAP=3:4 -- fence 1
	need [ "$status" -eq 99 ]
	need grep -q 'not supported' <<<"$err"
}
# refused PATTERN NAME=VALUE...: no job, and a message with this in it.
refused() {
	local pattern=$1
	shift
	run "$@" -- whoami
	need [ "$status" -eq 98 ]
	need [ -z "$out" ]
	need grep -Eq "$pattern" <<<"$err"
}
quiet() {
	run PTL_QUIET=1 PMI_RANK=0 -- whoami
	need [ "$status" -eq 98 ]
	need [ -z "$err" ]
}
long_map() {
	local map
	map=$(printf ':%.0s' {1..65537}) # the longest that fits in one variable has empty entries
	refused 'PTL_NIDMAP has 65537 entries, more than the 65536 possible' \
		"PTL_MY_RID=0" "PTL_NIDMAP=$map" PTL_PIDMAP=1
}

mkdir "$dir/mute"
ln -s "$(realpath "$mute_pmix")" "$dir/mute/libpmix.so.2"
if [ "${3-}" = silent ]; then
	check 'a PMIx launcher that does not answer' refused '(not answered .* 60 s: it is stopped|built without PMIx).*PTL_LAUNCHER=none' \
		PMIX_NAMESPACE=job PMIX_RANK=1 "LD_LIBRARY_PATH=$dir/mute"
	tap_done
	exit
fi
check 'no launcher: alone' alone
check 'alone: another job each time' different_alone
check 'alone: put, fence, get' alone_does fence 3
check 'alone: values of all lengths' alone_does values
check 'alone: several threads' alone_does threads
check 'PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP make a job' by_env
check 'which has no fence' no_fence_by_env
check 'PTL_MY_RID without maps: alone, for PtlSetRank to complain' alone PTL_MY_RID=0
check 'maps without PTL_MY_RID: alone, for PtlSetRank to complete' alone PTL_NIDMAP=1:2 PTL_PIDMAP=3:4
check 'an empty variable counts as unset' alone PMI_RANK= PTL_MY_RID=

check 'PMI_RANK without PMI_FD' refused 'PMI_FD is not: .* set PTL_LAUNCHER=none' PMI_RANK=0 PMI_SIZE=2
check 'PMI_FD that is not open' refused 'PMI_FD=123 is no open file \(Bad file.*sudo' PMI_FD=123 PMI_RANK=0 PMI_SIZE=2
check 'PMI_FD that is no socket' refused 'PMI_FD=0 is no socket' PMI_FD=0 PMI_RANK=0 PMI_SIZE=2
check 'PMI_FD that is no number' refused 'PMI_FD="seven" is no file number' PMI_FD=seven PMI_RANK=0
check 'PMI_FD below zero' refused 'PMI_FD="-1" is no file number' PMI_FD=-1 PMI_RANK=0 PMI_SIZE=1
check 'PMI_FD without PMI_RANK' refused 'PMI_RANK=-1 and PMI_SIZE=2 name no rank' PMI_FD=0 PMI_SIZE=2
check 'PMI_RANK outside the job' refused 'PMI_RANK=2 and PMI_SIZE=2 name no rank' PMI_FD=0 PMI_RANK=2 PMI_SIZE=2
silent() {
	run "$@" -- whoami
	need [ "$status" -eq 98 ]
	need [ -z "$out$err" ]
}
check 'PMI_PORT' refused 'PMI_PORT=host:1234\), which is not supported' PMI_PORT=host:1234 PMI_ID=0
# without libpmix: one that is no library; where Postern was built without PMIx the message is another
: >"$dir/libpmix.so.2"
check 'a PMIx launcher without libpmix' refused 'PMIx launcher.*(libpmix cannot be loaded: .*libpmix2|built without PMIx).*PTL_LAUNCHER=none' \
	PMIX_NAMESPACE=job PMIX_RANK=1 "LD_LIBRARY_PATH=$dir"
check 'which one process of a host says' silent PMIX_NAMESPACE=job PMIX_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 \
	"LD_LIBRARY_PATH=$dir"
check 'a PMIx launcher that does not say how many' refused '(how many ranks the job has|built without PMIx).*PTL_LAUNCHER=none' \
	PMIX_NAMESPACE=job PMIX_RANK=1 "LD_LIBRARY_PATH=$dir/mute"
check 'a PMIx launcher that is gone' refused 'PMIx.*PTL_LAUNCHER=none' PMIX_NAMESPACE=job PMIX_RANK=1

slurm=(SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_PROCID=1)
none=(SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2)
check 'srun without PMI' refused 'Slurm started this .*; start the job with srun --mpi=pmix or --mpi=pmi2 .*PTL_LAUNCHER=none' \
	"${slurm[@]}" "${none[@]}" SLURM_PROCID=0
check 'which one process of the job says' silent "${slurm[@]}" "${none[@]}"
check 'srun that does not say how many' refused 'Slurm started' SLURM_PROCID=0 SLURM_STEP_ID=0
check 'srun of one task: alone' alone "${slurm[@]}" SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1
check 'in the shell of an allocation: alone' alone SLURM_JOB_ID=7 SLURM_NTASKS=2
check 'in the script of a batch job: alone' alone "${slurm[@]}" SLURM_PROCID=0
check 'in a step of Slurm itself: alone' alone "${slurm[@]}" SLURM_PROCID=0 SLURM_STEP_ID=4294967291
check 'ranks by PTL_MY_RID under srun' by_env "${slurm[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3
check 'PALS' refused 'PALS started this process' PALS_RANKID=0 PALS_SIZE=2
check 'PALS with one process: alone' alone PALS_RANKID=0 PALS_SIZE=1
check "Open MPI's launcher without PMIx" refused 'Open MPI started this process .*PMIx got lost' OMPI_COMM_WORLD_RANK=0 \
	OMPI_COMM_WORLD_SIZE=2
check "Open MPI's launcher with one process: alone" alone OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1
check "Open MPI's launcher in a step of one task" refused 'Open MPI started this' SLURM_PROCID=0 \
	SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4

check 'PTL_LAUNCHER=none under PMI-1: alone' alone PTL_LAUNCHER=none PMI_FD=0 PMI_RANK=1 PMI_SIZE=2
check 'under PMIx: alone' alone PTL_LAUNCHER=none PMIX_NAMESPACE=job PMIX_RANK=1
check 'in a step of Slurm: alone' alone PTL_LAUNCHER=none "${slurm[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2
check 'with maps: alone' alone PTL_LAUNCHER=none PTL_MY_RID=1 PTL_NIDMAP=1:2 PTL_PIDMAP=3:4
check 'PTL_LAUNCHER=pmi1 without a launcher' refused 'PTL_LAUNCHER=pmi1 asks for' PTL_LAUNCHER=pmi1
check 'PTL_LAUNCHER=pmi2 without a launcher' refused 'PTL_LAUNCHER=pmi2 asks for .*PMI_FD is not set' PTL_LAUNCHER=pmi2
check 'PTL_LAUNCHER=pmix without a launcher' refused 'PTL_LAUNCHER=pmix asks for .*PMIX_NAMESPACE is not' PTL_LAUNCHER=pmix
check 'PTL_LAUNCHER=pmi1 takes no PMIx' refused 'PTL_LAUNCHER=pmi1 asks for' PTL_LAUNCHER=pmi1 PMIX_NAMESPACE=job PMIX_RANK=0
check 'PTL_LAUNCHER=pmi1 takes no other' refused 'PTL_LAUNCHER=pmi1 asks for' PTL_LAUNCHER=pmi1 PTL_MY_RID=0 \
	PTL_NIDMAP=1 PTL_PIDMAP=3

check 'garbage in PTL_NIDMAP' refused 'PTL_NIDMAP: entry 1, "frob~1b~5b31m", is no number' \
	PTL_MY_RID=0 PTL_NIDMAP=1:frob$'\e'[31m:3 PTL_PIDMAP=1:2:3
check 'an entry that is too large' refused 'PTL_PIDMAP: entry 2, "4294967296"' \
	PTL_MY_RID=0 PTL_NIDMAP=1:2:3 PTL_PIDMAP=1:2:4294967296
check 'the wildcard as an entry' refused 'PTL_PIDMAP: entry 0, "0xffffffff"' \
	PTL_MY_RID=0 PTL_NIDMAP=1 PTL_PIDMAP=0xffffffff
check 'an empty entry' refused 'PTL_NIDMAP: entry 1, ""' PTL_MY_RID=0 PTL_NIDMAP=1::3 PTL_PIDMAP=1:2:3
check 'a dotted pid' refused 'PTL_PIDMAP: entry 0, "1.2.3.4"' PTL_MY_RID=0 PTL_NIDMAP=1 PTL_PIDMAP=1.2.3.4
check 'maps of different lengths' refused 'PTL_NIDMAP has 2 entries and PTL_PIDMAP 3' \
	PTL_MY_RID=0 PTL_NIDMAP=1:2 PTL_PIDMAP=1:2:3
check 'a rank outside the maps' refused 'PTL_MY_RID="2" is no rank.* 0 to 1' PTL_MY_RID=2 PTL_NIDMAP=1:2 PTL_PIDMAP=3:4
check 'a map that is too long' long_map
check 'PTL_QUIET' quiet

tap_done
