# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Test results as TAP for tests written in bash: source this, call `check`, end with `tap_done`.
# shellcheck shell=bash

tap_count=0
tap_failed=0

# check NAME COMMAND...: one test case; it passes when the command succeeds. The command's output
# is shown as a comment when it fails.
check() {
	local name=$1 output
	shift
	tap_count=$((tap_count + 1))
	if output=$("$@" 2>&1); then
		echo "ok $tap_count - $name"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_count - $name"
		printf '%s\n' "$output" | sed 's/^/# /'
	fi
}

# tap_skip NAME REASON: a case that cannot run here.
tap_skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# The plan, at the end, so that a script that stops early is seen; the exit status says whether
# every case passed.
tap_done() {
	echo "1..$tap_count"
	[ "$tap_failed" -eq 0 ] && [ "$tap_count" -gt 0 ]
}
