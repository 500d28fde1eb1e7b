#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Does MPICH make of 5,000 random datatypes what we do? One program, compiled for both.
# Usage: type_oracle.sh OURS
set -eu -o pipefail
here=$(dirname "$0")
# shellcheck source=test/tap.sh
. "$here/../../tap.sh"

ours=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

same() {
	"$ours" 5000 1 >"$dir/ours"
	"$dir/oracle" 5000 1 >"$dir/theirs"
	[ "$(wc -l <"$dir/ours")" -eq 5000 ] && diff "$dir/theirs" "$dir/ours"
}

name='sizes, bounds and packed data of 5000 random types are those of MPICH'
if command -v mpicc.mpich >/dev/null; then
	mpicc.mpich -o "$dir/oracle" "$here/type_oracle.c"
	check "$name" same
else
	tap_skip "$name" 'no mpicc.mpich; install the package libmpich-dev'
fi
tap_done
