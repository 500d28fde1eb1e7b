#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# bench/start: a row for each launcher that is here, and a failure where ranks do not start. Usage: start_test.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
build=$1

# rows LAUNCHER...: one for each, with four figures
rows() {
	local output name
	output=$("$here/start" --prefix "$build" --ranks 2,3 --times 1) || return
	echo "$output"
	for name; do
		[ "$(grep -Ec "^ +[23] $name( +[0-9]+){4}\$" <<<"$output")" -eq 2 ] || return
	done
}
fails() {
	local output status=0
	output=$("$here/start" --prefix "$build" --ranks 2 --times 2 --launcher mpiexec --timeout 0.001 2>&1) ||
		status=$?
	echo "$output"
	[ "$status" -eq 1 ] && grep -q 'did not end in 0.001 s.*leaving it out' <<<"$output"
}
unknown() {
	! "$here/start" --prefix "$build" --launcher none && ! "$here/start" --prefix /nonexistent
}
names=(mpiexec)
! command -v mpiexec.hydra >/dev/null || names+=(hydra)
! command -v mpirun.openmpi >/dev/null || names+=(mpirun)
check "a row for each: ${names[*]}" rows "${names[@]}"
check 'a job that does not end is left out, and that is a failure' fails
check 'what is not there is said' unknown
tap_done
