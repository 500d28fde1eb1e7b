#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Jobs that start others, by our mpiexec.
#
# Usage: spawn.sh MPIEXEC SPAWN
set -eu
# shellcheck source=test/tap.sh
. "$(cd "$(dirname "$0")/../.." && pwd)/tap.sh"

mpiexec=$1
spawn=$2
unset PMI_FD PMI_RANK PMI_SIZE

job() {
	timeout -k 5 120 "$mpiexec" "$@"
}

# ends STATUS COMMAND...: the command ends with it.
ends() {
	local status=0

	"${@:2}" || status=$?
	[ "$status" -eq "$1" ] && return
	echo "status $status"
	return 1
}

# The process has no launcher: the text says what to do.
alone() {
	local text

	text=$(timeout -k 5 60 "$spawn" 1 2>&1) && return 1
	[[ $text == *'cannot be spawned: no launcher'*mpiexec* ]] && return
	echo "$text"
	return 1
}

check 'a child' job -n 1 "$spawn" 1
check 'three children of two processes' job -n 2 "$spawn" 3
check 'arguments with blanks, and a directory' job -n 2 "$spawn" args
check 'two programs at once' job -n 1 "$spawn" multiple
check 'a program that is not there' job -n 2 "$spawn" missing
check 'the next one after one of two that cannot be started' job -n 1 "$spawn" trouble
check 'a grandchild' job -n 1 "$spawn" grand
check 'names' job -n 1 "$spawn" names
check "the universe's size" job -n 2 "$spawn" universe
check 'a child that fails ends all' ends 3 job -n 1 "$spawn" fails
check 'a child that does not know of MPI' ends 1 job -n 1 "$spawn" silent
check 'without a launcher' alone
if command -v mpiexec.hydra >/dev/null; then
	check 'two children under Hydra' timeout -k 5 60 mpiexec.hydra -n 2 "$spawn" 2
	check 'names under Hydra' timeout -k 5 60 mpiexec.hydra -n 1 "$spawn" names
else
	tap_skip 'two children under Hydra' 'mpiexec.hydra is not installed'
fi
tap_done
