#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# PTL_REPORT=1 says which transport led to which peer, by what it works, why others were not used, and all packets that
# went. Usage: report.sh MPIEXEC PROGRAM [ARG...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

unset "${!PTL_@}"
said=$(mktemp)
trap 'rm -f "$said" "$said.each" "$said.apart"' EXIT

run() { # TRANSPORTS COMMAND...
	local nals=$1
	shift
	PTL_NAL=$nals PTL_REPORT=1 timeout 100 "$@" >"$said" 2>&1
}
says() { # NUMBER TEXT: in so many lines
	local lines
	lines=$(grep -c -- "$2" "$said") || true
	[ "$lines" -eq "$1" ] || {
		echo "$lines lines, not $1, with: $2"
		cat "$said"
		return 1
	}
}
# A message over a fabric is a packet at least, so of each process no fewer packets are reported than messages to its peers.
all_packets() {
	awk '
		/ messages to it, / { sub(/ messages to it.*/, ""); n = $NF; messages[$1] += n }
		/ packets sent$/ { packets[$1] = $2 }
		END {
			for (who in messages) {
				seen++
				if (packets[who] < messages[who]) {
					print who, messages[who], "messages,", packets[who], "packets"
					few++
				}
			}
			exit !seen || few
		}' "$said"
}

check 'a job over libfabric' run ofi:tcp "$@"
check 'each rank says by which provider' says 2 'ofi works by libfabric.s provider tcp'
# ... or was: a rank that reports last hears before that that the other has closed
check 'and which peer is reached so' says 2 'peer nid .* by ofi[^:]*: [1-9][0-9]* messages to it, [1-9]'
for nal in shm udp; do
	check "and why $nal is not used" says 2 "$nal is not used: PTL_NAL does not name it"
done
check 'all packets are counted' all_packets
# Rank 0 would take libfabric, which rank 1 does not offer.
cat >"$said.each" <<'END'
#!/bin/sh
[ "$PMI_RANK" -eq 0 ] || PTL_NAL=udp
exec "$@"
END
chmod +x "$said.each"
check 'a job of which one rank has no libfabric' run ofi:tcp,udp "${@:1:3}" "$said.each" "${@:4}"
check 'the other says that this is why it is reached by UDP' \
	says 1 'ofi does not lead to nid 0x[0-9a-f]* pid [0-9]*: it does not offer that'
# Each rank on a node of its own.
cat >"$said.apart" <<'END'
#!/bin/sh
PTL_IFACE=127.0.3.$((PMI_RANK + 1)) exec "$@"
END
chmod +x "$said.apart"
check 'a job on two nodes' run shm,udp "${@:1:3}" "$said.apart" "${@:4}"
check 'each rank says why the other is not reached by shared memory' \
	says 2 'shm does not lead to nid 0x[0-9a-f]* pid [0-9]*: it is on another node'
check 'a job over shared memory' run shm "$@"
check 'nobody says that of a neighbour' says 0 'shm does not lead'
check 'each rank says what it is to itself' says 2 'peer nid .* by shm, itself$'
check 'no numbers that nobody counts' says 0 'messages to it'
tap_done
