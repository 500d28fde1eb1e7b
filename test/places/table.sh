#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Each row of doc/places.md names a case of places.sh, and each case has a row.
# Usage: table.sh TABLE SCRIPT
set -eu
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"
table=$1 script=$2

rows() { # the last column, but for the heads
	sed -n 's/^|.*| *\([^|]*[^| ]\) *|$/\1/p' "$table" | grep -vx -e "---" -e case
}
cases() {
	sed -n "s/^.*\(check\|mounted\|filtered\|apart\) '\([^']*\)'.*/\2/p" "$script"
}
same() {
	diff <(rows | sort) <(cases | sort)
}
enough() {
	[ "$(rows | wc -l)" -ge 25 ]
}
check 'the table names the cases that there are' same
check 'and was read' enough
tap_done
