#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Does summary.py count what happened? Gives it logs as meson writes them and looks at its last
# line and exit status. A counter that overlooks a failure would let everything else pass.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/meson-logs"

# log RESULT STDOUT...: one line of the log per pair of arguments; exit status $returncode
returncode=1
log() {
	: >"$dir/meson-logs/testlog.json"
	while [ $# -gt 0 ]; do
		python3 -c 'import json, sys
print(json.dumps({"name": "t", "result": sys.argv[1], "stdout": sys.argv[2],
    "returncode": int(sys.argv[3])}))' "$1" "$2" "$returncode" >>"$dir/meson-logs/testlog.json"
		shift 2
	done
}

# gives STATUS LAST-LINE
gives() {
	local status=0 output
	output=$(python3 "$here/../summary.py" "$dir") || status=$?
	printf 'status %s\n%s\n' "$status" "$output"
	[ "$status" -eq "$1" ] && [ "$(tail -n 1 <<<"$output")" = "$2" ]
}

log OK $'1..2\nok 1 - a\nok 2 - b\n' OK ''
check "cases of a TAP test count each, another test once" gives 0 "3 passed, 0 failed"
log FAIL $'1..2\nok 1 - a\nnot ok 2 - b\n'
check "a failed case fails the run" gives 1 "1 passed, 1 failed"
log OK $'1..2\nok 1 - a\nok 2 - b # SKIP no network\n'
check "a skipped case is neither passed nor failed" gives 0 "1 passed, 0 failed, 1 skipped"
returncode=0
log FAIL $'1..2\nok 1 - a\nnot ok 2 # SKIP b\n'
check "a skip as cmocka prints it is none either" gives 0 "1 passed, 0 failed, 1 skipped"
returncode=1
log FAIL $'1..2\nok 1 - a\nnot ok 2 # SKIP b\n'
check "but not if the program failed" gives 1 "1 passed, 1 failed, 1 skipped"
log OK $'1..0 # SKIP nothing here\n' OK $'ok 1 - a\n1..1\n'
check "a wholly skipped program counts one skip" gives 0 "1 passed, 0 failed, 1 skipped"
log ERROR $'1..3\nok 1 - a\n'
check "a program that stops before its plan fails" gives 1 "1 passed, 1 failed"
log ERROR $'1..1\nok 1 - a\n'
check "a program that dies after its last case fails" gives 1 "1 passed, 1 failed"
log TIMEOUT '' OK ''
check "a timeout fails" gives 1 "1 passed, 1 failed"
log FAIL ''
check "a failed program without TAP fails" gives 1 "0 passed, 1 failed"
log
check "no test at all fails" gives 1 "0 passed, 0 failed"
log SKIP ''
check "nothing but skipped tests fails" gives 1 "0 passed, 0 failed, 1 skipped"

tap_done
