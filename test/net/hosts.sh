#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Jobs across hosts: network namespaces joined by veth pairs and a bridge, in a namespace of their own that goes with
# this script. Hydra starts the ranks as it would on machines, with a launcher that enters a namespace instead of
# calling ssh; so does our mpiexec, which knows one machine, through a wrapper that puts each rank on one of the hosts.
# Usage: hosts.sh MPIEXEC MIXED FIGURES MPI_PROGRAM [eth [MPI_PROGRAM...]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}
if [ -z "${POSTERN_IN_HOSTS-}" ]; then
	command -v ip >/dev/null || skip_all 'ip(8) is not installed'
	unshare -rnm true 2>/dev/null || skip_all 'network namespaces are not allowed here'
	# what is made here is of no concern to the machine: its addresses exist in the new namespace only
	exec env POSTERN_IN_HOSTS=1 unshare -rnm --kill-child "$0" "$@"
fi

mpiexec=$1
mixed=$2
figures=$3
program=$4
with_eth=${5-}
more=${*:6}
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE "${!PTL_@}"

# ---- two hosts, 10.77.0.1 and .2, beside us, .254 ---------------------------------------------------

holder() { # of a host's namespaces, until we end; Open MPI tells hosts by their names
	# shellcheck disable=SC2016 # the inner shell expands
	unshare -nu sh -c 'hostname "$0" && exec sleep 600' "$1" &
	pids+=($!)
	local deadline=$((SECONDS + 10))
	until [ "$(readlink "/proc/${pids[-1]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do
		[ $SECONDS -lt $deadline ] || return 1
	done
}
lay_cables() {
	ip link set lo up
	ip link add br77 type bridge
	ip addr add 10.77.0.254/24 dev br77
	ip link set br77 up
	for i in 1 2; do
		holder "host$i"
		ip link add "port$i" type veth peer name eth0 netns "${pids[-1]}"
		ip link set "port$i" master br77 up
		inside $i ip link set lo up
		inside $i ip addr add "10.77.0.$i/24" dev eth0
		inside $i ip link set eth0 up
	done
}
inside() {
	local host=$1
	shift
	nsenter -t "${pids[$((host - 1))]}" -n -u "$@"
}
set_mtu() {
	ip link set br77 mtu "$1"
	for i in 1 2; do
		ip link set "port$i" mtu "$1"
		inside $i ip link set eth0 mtu "$1"
	done
}
reachable() {
	local deadline=$((SECONDS + 10))
	until inside 1 bash -c 'exec 3<>/dev/udp/10.77.0.2/9 && echo >&3' 2>/dev/null; do
		[ $SECONDS -lt $deadline ] || return 1
	done
}

lay_cables 2>"$dir/err" || skip_all "virtual links are not allowed here: $(tail -n 1 "$dir/err")"
reachable || skip_all 'the virtual links do not come up'

# Hydra and Open MPI call: launcher [options] HOST COMMAND...
cat >"$dir/launcher" <<SCRIPT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in
10.77.0.1) pid=${pids[0]} ;;
10.77.0.2) pid=${pids[1]} ;;
*) echo "no host \$1" >&2; exit 1 ;;
esac
shift
exec nsenter -t "\$pid" -n -u sh -c "\$*"
SCRIPT
# our mpiexec calls: each RANKS_PER_HOST PROGRAM...
cat >"$dir/each" <<SCRIPT
#!/bin/sh
per=\$1
shift
case \$((PMI_RANK / per)) in
0) pid=${pids[0]} ;;
*) pid=${pids[1]} ;;
esac
exec nsenter -t "\$pid" -n -u "\$@"
SCRIPT
chmod +x "$dir/launcher" "$dir/each"

# ---- jobs ------------------------------------------------------------------------------------------

passed() { # COMMAND...: no "not ok", and an "ok"
	local status=0
	timeout -k 5 100 "$@" >"$dir/out" 2>&1 </dev/null || status=$?
	cat "$dir/out"
	[ "$status" -eq 0 ] && grep -q '^ok ' "$dir/out" && ! grep -q '^not ok ' "$dir/out"
}
hydra() {
	local ranks=$1
	shift
	passed mpiexec.hydra -launcher ssh -launcher-exec "$dir/launcher" -iface br77 \
		-hosts 10.77.0.1,10.77.0.2 -n "$ranks" "$@"
}
ours() {
	passed "$mpiexec" -n "$@"
}
handed() {
	passed "$mpiexec" --launcher hydra -launcher-exec "$dir/launcher" -iface br77 "$@"
}
handed_file() {
	printf '10.77.0.1 slots=2 # the first\n10.77.0.2:2\n' >"$dir/hosts"
	handed -hostfile "$dir/hosts" "$@"
}
status_of_hosts() {
	local status=0
	timeout -k 5 100 "$mpiexec" --launcher hydra -launcher-exec "$dir/launcher" -iface br77 \
		-host 10.77.0.1,10.77.0.2 sh -c 'exit 5' >"$dir/out" 2>&1 </dev/null || status=$?
	cat "$dir/out"
	[ "$status" -eq 5 ]
}
env_is() {
	local setting=$1
	shift
	(
		export "${setting?}"
		"$@"
	)
}
mtu_is() {
	set_mtu "$1"
	shift
	"$@"
}

by_hydra=(mpiexec.hydra -launcher ssh -launcher-exec "$dir/launcher" -iface br77 -hosts "10.77.0.1,10.77.0.2")
by_mpiexec=("$mpiexec" --launcher hydra -launcher-exec "$dir/launcher" -iface br77 -host "10.77.0.1:2,10.77.0.2:2")
by_mpirun=(env "TMPDIR=$dir" mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent "$dir/launcher" --bind-to none
	--host "10.77.0.1:2,10.77.0.2:2")
# An MPI program prints there what it prints here: figures_by LAUNCHER...
figures_by() {
	local status=0
	"$mpiexec" -n 4 "$figures" 2>&1 </dev/null | sort >"$dir/here"
	(PTL_NAL=udp "$@" -n 4 "$figures") >"$dir/out" 2>"$dir/err" </dev/null || status=$?
	sort "$dir/out" >"$dir/there"
	cat "$dir/here" "$dir/there" "$dir/err"
	[ "$status" -eq 0 ] && [ "$(grep -c '^rank [0-3] of 4: ring [0-9]* sum of' "$dir/there")" -eq 4 ] &&
		cmp "$dir/here" "$dir/there"
}
if command -v mpiexec.hydra >/dev/null; then
	check 'an MPI program on two hosts under Hydra: the figures that it has on one' figures_by "${by_hydra[@]}"
	check 'and by our mpiexec' figures_by "${by_mpiexec[@]}"
	check 'two hosts under Hydra, MTU 1500' mtu_is 1500 hydra 2 "$program" 1 3
	check 'two hosts under Hydra, MTU 9000' mtu_is 9000 hydra 2 "$program" 1 3
	check 'four ranks on two hosts: shared memory on each, UDP between' hydra 4 "$program" 1 3
	check 'and nothing else, as they say' hydra 4 "$mixed" udp
	check 'our mpiexec hands hosts over to Hydra' handed -host 10.77.0.1:2,10.77.0.2:2 "$mixed" udp
	check 'and those of a file' handed_file "$mixed" udp
	check 'and programs with hosts of their own' \
		handed -host 10.77.0.1 -n 2 "$mixed" udp : -host 10.77.0.2 -n 2 "$mixed" udp
	check 'and has the exit status of the job' status_of_hosts
else
	tap_skip 'two hosts under Hydra' 'mpiexec.hydra is not installed'
fi
if ! command -v mpirun.openmpi >/dev/null; then
	tap_skip "two hosts under Open MPI's mpirun" 'mpirun.openmpi is not installed'
elif PTL_LAUNCHER=pmix PMIX_NAMESPACE=none PMIX_RANK=0 "$figures" 2>&1 | grep -q 'built without'; then
	tap_skip "two hosts under Open MPI's mpirun" 'Postern was built without PMIx'
else
	check "an MPI program on two hosts under Open MPI's mpirun: the figures that it has on one" \
		figures_by "${by_mpirun[@]}" -x PTL_NAL
	check 'shared memory on each, UDP between' passed "${by_mpirun[@]}" -n 4 "$mixed" udp
fi
check 'ranks of our mpiexec in two namespaces' mtu_is 1500 ours 4 "$dir/each" 2 "$program" 1 3
check 'which share memory on each, and use UDP between' ours 4 "$dir/each" 2 "$mixed" udp
full() {
	PTL_AUTH=full ours "$@"
}
check 'whole packets protected' full 2 "$dir/each" 1 "$program" 1 2
if inside 1 tc qdisc add dev eth0 root netem loss 2% delay 1ms 2>/dev/null; then
	check 'a lossy link of one millisecond' ours 2 "$dir/each" 1 "$program" 1 2
	inside 1 tc qdisc del dev eth0 root
else
	tap_skip 'a lossy link of one millisecond' 'this kernel has no netem'
fi

# frames instead of UDP: the hosts' addresses are used by Hydra only
frames() {
	PTL_IFACE=eth0 "$@"
}
if [ -n "$with_eth" ]; then
	if command -v mpiexec.hydra >/dev/null; then
		check 'frames between two hosts under Hydra, MTU 1500' \
			env_is PTL_NAL=eth frames mtu_is 1500 hydra 2 "$program" 1 3
		check 'frames between two hosts under Hydra, MTU 9000' \
			env_is PTL_NAL=eth frames mtu_is 9000 hydra 2 "$program" 1 3
		check 'four ranks on two hosts: shared memory on each, frames between' \
			env_is PTL_NAL=shm,eth frames hydra 4 "$program" 1 3
		check 'and nothing else, as they say' env_is PTL_NAL=shm,eth frames hydra 4 "$mixed" eth
	else
		tap_skip 'frames between two hosts under Hydra' 'mpiexec.hydra is not installed'
	fi
	check 'four ranks on two hosts, frames between all' \
		env_is PTL_NAL=eth frames mtu_is 1500 ours 4 "$dir/each" 2 "$program" 1 3
	for other in $more; do
		check "frames between two hosts: $(basename "$other")" \
			env_is PTL_NAL=eth frames ours 2 "$dir/each" 1 "$other"
	done
	if inside 1 tc qdisc add dev eth0 root tbf rate 100mbit burst 32kbit latency 20ms 2>/dev/null; then
		check 'frames on a link of 100 Mbit/s' \
			env_is PTL_NAL=eth frames ours 2 "$dir/each" 1 "$program" 1 2
		inside 1 tc qdisc del dev eth0 root
	else
		tap_skip 'frames on a link of 100 Mbit/s' 'this kernel has no tbf'
	fi
fi
tap_done
