#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Clients in the style of the reference implementation and of the Cray XT, run as such clients were:
# alone, by a launcher, and with the variables of the former set by hand.
# Usage: test_legacy.sh MPIEXEC UTCP_CLIENT CRAY_CLIENT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
utcp_client=$2
cray_client=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID "${!PTL_@}"

# right N COMMAND...: the command succeeds within a minute and N ranks say that all is right.
right() {
	local n=$1 status=0
	shift
	timeout -k 5 60 "$@" >"$dir/out" 2>&1 || status=$?
	cat "$dir/out"
	[ "$status" -eq 0 ] && [ "$(grep -c 'right$' "$dir/out")" -eq "$n" ]
}

# The variables of the reference implementation: two processes, started by hand.
by_hand() {
	local nid pid=$((61000 + $$ % 4500)) rank status=0 jobs=() # not those of other tests, nor of the kernel
	nid=$("$utcp_client" | sed -n 's/^rank 0 of 1 is nid \(0x[0-9a-f]*\) .*/\1/p')
	[ -n "$nid" ] || return 1
	nid=$((nid))
	for rank in 0 1; do
		PTL_MY_RID=$rank PTL_NIDMAP=$nid:$nid PTL_PIDMAP=$pid:$((pid + 1)) \
			timeout -k 5 60 "$utcp_client" >"$dir/by_hand.$rank" 2>&1 &
		jobs+=($!)
	done
	for rank in 0 1; do
		wait "${jobs[rank]}" || status=$?
	done
	cat "$dir/by_hand.0" "$dir/by_hand.1"
	[ "$status" -eq 0 ] || return 1
	grep -q "rank 1 of 2 is nid .* pid $((pid + 1))\$" "$dir/by_hand.1"
	grep -q '^rank 0: right$' "$dir/by_hand.0"
	grep -q '^rank 1: right$' "$dir/by_hand.1"
}

check 'a utcp client alone' right 1 "$utcp_client"
check 'a Cray client alone' right 1 "$cray_client"
for n in 2 5; do
	check "$n ranks of a utcp client" right "$n" "$mpiexec" -n "$n" "$utcp_client"
	check "$n ranks of a Cray client" right "$n" "$mpiexec" -n "$n" "$cray_client"
done
check 'a utcp client with its variables set by hand' by_hand
if command -v mpiexec.hydra >/dev/null; then
	check 'ranks of a utcp client under Hydra' right 3 mpiexec.hydra -n 3 "$utcp_client"
	check 'ranks of a Cray client under Hydra' right 3 mpiexec.hydra -n 3 "$cray_client"
else
	tap_skip 'legacy clients under Hydra' 'mpiexec.hydra is not installed'
fi
tap_done
