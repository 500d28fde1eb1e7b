#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Ranks under Slurm's srun: a controller and two nodes on this machine, with a munge daemon of their
# own. All in one folder, which goes at the end. Usage: test_slurm.sh RT_JOB PORTALS_INFO MPI_HELLO MPIEXEC
# shellcheck disable=SC2016 # the shells of ranks expand
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

rt_job=$1
info=$2
hello=$3
mpiexec=$4
unset "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}" "${!PTL_@}"

for command in slurmctld slurmd munged srun salloc; do
	if ! command -v "$command" >/dev/null; then
		tap_skip 'Slurm' "no $command; install the packages slurm-wlm and munge"
		tap_done
		exit
	fi
done
if [ "$(id -u)" -ne 0 ]; then
	tap_skip 'Slurm' 'its daemons need root here'
	tap_done
	exit
fi

# a short path: sockets are made in it
dir=$(mktemp -d /tmp/ptl-slurm.XXXXXX)
daemons=()
stop_all() {
	local pid
	# the nodes first: they end their steps
	for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${daemons[@]}"; do wait "$pid" 2>/dev/null || true; done
	[ ! -f "$dir/munge.pid" ] || kill "$(cat "$dir/munge.pid")" 2>/dev/null || true
	rm -rf "$dir"
}
trap stop_all EXIT

# Ports that nobody listens at.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}
host=$(uname -n)
host=${host%%.*}
chmod 755 "$dir"
mkdir "$dir"/{state,spool.n1,spool.n2,tmp.n1,tmp.n2}
(umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
cat >"$dir/slurm.conf" <<END
ClusterName=postern
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
SlurmUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
TmpFS=$dir/tmp.%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/ctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
MailProg=/bin/true
KillWait=2
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=1
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES State=UP
END
export SLURM_CONF=$dir/slurm.conf

eventually() {
	local deadline=$((SECONDS + 30))
	until "$@"; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.1
	done
}
nodes_idle() { [ "$(sinfo -h -N -o '%N %t' 2>/dev/null | grep -c ' idle$')" -eq 2 ]; }
begin() {
	munged --force --socket="$dir/munge.sock" --key-file="$dir/munge.key" --pid-file="$dir/munge.pid" \
		--log-file="$dir/munge.log" --seed-file="$dir/munge.seed" || return 1
	slurmctld -D >"$dir/ctld.out" 2>&1 &
	daemons+=($!)
	slurmd -N n1 -D >"$dir/n1.out" 2>&1 &
	daemons+=($!)
	slurmd -N n2 -D >"$dir/n2.out" 2>&1 &
	daemons+=($!)
	eventually nodes_idle
}
if ! begin; then
	tail -n 5 "$dir"/*.log "$dir"/*.out 2>/dev/null | sed 's/^/# /'
	tap_skip 'Slurm' 'its daemons do not start here'
	tap_done
	exit
fi

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

step() {
	run srun --overcommit "--mpi=$mpi" -N "$nodes" -n "$@"
}
does() {
	step "$1" "$rt_job" "$2" ${3+"$3"}
	need status_is 0
	need out_lines "$1" " done\$"
}
same_job() {
	step 4 "$rt_job" whoami
	need status_is 0
	need out_lines 4 'of 4 kind 2 job'
	need [ "$(sed 's/.* job //' "$dir/out" | sort -u | wc -l)" -eq 1 ]
	need [ "$(sed 's/ of .*//' "$dir/out" | sort -u | wc -l)" -eq 4 ]
}
used() {
	step 4 "$info" --launcher
	need status_is 0
	need out_lines 4 "^  $1     used"
	need out_lines 4 "on this host [01] of 2\$"
}
by_pmi1() {
	export PTL_LAUNCHER=pmi1
	same_job
	does 4 fence 2
}
aborts() {
	step 4 "$rt_job" abort 2 42
	need [ "$status" -ne 0 ]
	need [ "$status" -ne 124 ]
	need grep -q 'this is the reason' "$dir/err"
}
# the others would wait for ever
gives_up() {
	step 4 "$rt_job" give_up 1 7
	need [ "$status" -ne 0 ]
	need [ "$status" -ne 124 ]
}
status_kept() {
	step 4 "$rt_job" late 1 5
	need status_is 5
	need out_lines 3 'at its end'
}
mpi_runs() {
	step 4 "$@" "$hello"
	need status_is 0
	need grep -q 'the ranks add up to 6' "$dir/out"
}
refused() {
	step 4 "$hello"
	need status_is 1
	# the cause, and the function that failed for it: by one rank of four
	need [ "$(grep -c '^postern.*Slurm started this process' "$dir/err")" -le 2 ]
	need grep -q 'srun --mpi=pmix or --mpi=pmi2' "$dir/err"
}
in_allocation() {
	run salloc -Q -N 1 sh -c '"$0" whoami' "$rt_job"
	need status_is 0
	need out_lines 1 'of 1 kind 0 job alone'
	need [ ! -s "$dir/err" ]
}
# Our mpiexec in an allocation, without a number: it starts what is allocated.
allocated() { # SALLOC-OPTIONS -- MPIEXEC-ARGS
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	run salloc -Q -O "${options[@]}" "$mpiexec" "$@"
}
handed_over() {
	allocated -N 2 -n 4 -- -v "$rt_job" whoami
	need status_is 0
	need grep -q '^mpiexec: running .*/srun --mpi=pmi2 --ntasks=4 ' "$dir/err"
	need out_lines 4 'of 4 kind 2 job'
	need [ "$(sed 's/.* job //' "$dir/out" | sort -u | wc -l)" -eq 1 ]
	need [ "$(sed 's/ of .*//' "$dir/out" | sort -u | wc -l)" -eq 4 ]
	allocated -N 2 -n 4 -- "$hello"
	need status_is 0
	need grep -q 'the ranks add up to 6' "$dir/out"
}
handed_options() {
	allocated -N 2 -n 4 -- -n 2 -ppn 1 -l -wdir "$dir/state" -env SET 'a, b' sh -c 'echo "$PWD $SET $SLURM_NODEID"'
	need status_is 0
	need [ "$(sort "$dir/out")" = "0: $dir/state a, b 0"$'\n'"1: $dir/state a, b 1" ]
	allocated -N 2 -n 4 -- -host n2,n1 sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"'
	need status_is 0
	need [ "$(sort "$dir/out")" = $'0 n2\n1 n1' ]
}
handed_status() {
	allocated -N 2 -n 2 -- sh -c '[ "$SLURM_PROCID" -eq 0 ] || exit 5; sleep 60'
	need [ "$status" -ne 0 ]
	need [ "$status" -ne 124 ]
}
one_node() {
	allocated -N 1 -n 3 -- "$rt_job" whoami
	need status_is 0
	need out_lines 3 'of 3 kind 2 job postern_'
}
lacks_pmix() {
	PTL_LAUNCHER=pmix PMIX_NAMESPACE=none PMIX_RANK=0 "$info" --launcher 2>&1 | grep -q 'built without'
}
has_mpi() { srun --mpi=list 2>&1 | grep -qw "$1"; }

for mpi in pmi2 pmix; do
	if ! has_mpi "$mpi"; then
		tap_skip "srun --mpi=$mpi" 'this Slurm was built without it'
		continue
	fi
	if [ "$mpi" = pmix ] && lacks_pmix; then
		tap_skip "srun --mpi=$mpi" 'Postern was built without PMIx; install libpmix-dev'
		continue
	fi
	nodes=2
	check "$mpi: one job of two nodes" same_job
	check "$mpi: portals-info tells of it" used "$mpi"
	check "$mpi: put, fence, get by 8 ranks" does 8 fence 3
	check "$mpi: values of all lengths and bytes" does 4 values
	check "$mpi: several threads of a rank ask at once" does 4 threads
	check "$mpi: an exit status after leaving the job is kept" status_kept
	check "$mpi: an exit status before leaving the job ends it" gives_up
	check "$mpi: an abort" aborts
	check "$mpi: MPI" mpi_runs
	if has_udp; then
		check "$mpi: MPI over UDP, with the job's secret" mpi_runs env PTL_NAL=udp
	else
		tap_skip "$mpi: MPI over UDP, with the job's secret" 'Postern was built without udp'
	fi
	nodes=1
	check "$mpi: a job of one rank" does 1 fence 2
done
mpi=pmi2 nodes=2
check 'pmi2: PMI-1 can be asked for' by_pmi1
mpi=none
check 'none: an error of one rank, with its remedy' refused
check 'in the shell of an allocation: alone, quiet' in_allocation
if has_mpi pmi2; then
	check 'mpiexec in an allocation of two nodes hands over to srun' handed_over
	check 'with its options' handed_options
	check 'a rank that fails ends the job' handed_status
else
	tap_skip 'mpiexec in an allocation of two nodes' 'this Slurm was built without pmi2'
fi
check 'mpiexec in an allocation of one node starts the ranks itself' one_node
tap_done
