#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Runs a command on the first of two hosts that a cable of a given rate, delay and loss joins: two network namespaces with
# 10.78.0.1 and 10.78.0.2 on eth0, in a namespace of their own that goes with this script. The command finds
#   CABLED_LAUNCHER  what launchers call instead of ssh: [OPTION...] HOST COMMAND...
#   CABLED_EACH      what puts a rank on its host, for launchers that know one machine: RANKS_PER_HOST PROGRAM...
# in its environment. Exits with 77 and a reason where this is not allowed. With CABLED_TCP the hosts' TCP
# uses that congestion control.
# Usage: cabled.sh CABLE "CABLE-OPTION..." COMMAND [ARG...]
set -eu

not_here() {
	echo "$1"
	exit 77
}
if [ -z "${POSTERN_CABLED-}" ]; then
	command -v ip >/dev/null || not_here 'ip(8) is not installed'
	unshare -rnmpf true 2>/dev/null || not_here 'network namespaces are not allowed here'
	[ -w /dev/net/tun ] || not_here '/dev/net/tun cannot be opened'
	# all that was started here ends with the first process of the namespace
	exec env POSTERN_CABLED=1 unshare -rnmpf --mount-proc --kill-child "$0" "$@"
fi
unset POSTERN_CABLED

cable=$1
read -ra options <<<"$2"
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

hosts=()
holder() { # of a host's namespaces, until we end
	unshare -nu sleep 3600 &
	hosts+=($!)
	local deadline=$((SECONDS + 10))
	until [ "$(readlink "/proc/${hosts[-1]}/ns/uts")" != "$(readlink /proc/self/ns/uts)" ]; do
		[ $SECONDS -lt $deadline ] || not_here 'a namespace cannot be made'
	done
}
inside() {
	local host=${hosts[$(($1 - 1))]}
	shift
	nsenter -t "$host" -n -u "$@"
}
holder
holder
"$cable" "${options[@]}" "${hosts[@]}" 2>"$dir/cable" &
wire=$!
for i in 1 2; do
	deadline=$((SECONDS + 10))
	until inside $i ip link show up dev eth0 2>/dev/null | grep -q eth0; do
		kill -0 $wire 2>/dev/null || not_here "$(cat "$dir/cable")"
		[ $SECONDS -lt $deadline ] || not_here 'the cable does not come up'
	done
	inside $i hostname "host$i"
	inside $i ip link set lo up
	inside $i ip addr add "10.78.0.$i/24" dev eth0
	[ -z "${CABLED_TCP-}" ] || inside $i ip route replace 10.78.0.0/24 dev eth0 congctl "$CABLED_TCP"
done

cat >"$dir/launcher" <<SCRIPT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in
10.78.0.1) pid=${hosts[0]} ;;
10.78.0.2) pid=${hosts[1]} ;;
*) echo "no host \$1" >&2; exit 1 ;;
esac
shift
exec nsenter -t "\$pid" -n -u sh -c "\$*"
SCRIPT
cat >"$dir/each" <<SCRIPT
#!/bin/sh
per=\$1
shift
case \$((PMI_RANK / per)) in
0) pid=${hosts[0]} ;;
*) pid=${hosts[1]} ;;
esac
exec nsenter -t "\$pid" -n -u "\$@"
SCRIPT
chmod +x "$dir/launcher" "$dir/each"
export CABLED_LAUNCHER=$dir/launcher CABLED_EACH=$dir/each
status=0
inside 1 "$@" || status=$?
kill $wire
wait $wire || true
[ -z "${CABLED_REPORT-}" ] || cat "$dir/cable" >"$CABLED_REPORT"
exit $status
