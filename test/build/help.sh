#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Every installed tool answers --help with a usage text and success, refuses an option it does not
# have, and has a manual page. Usage: help.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

helps() {
	local output
	output=$("$1" --help 2>&1 </dev/null) || return
	printf '%s\n' "$output"
	grep -qi '^usage: ' <<<"$output"
}
refuses() {
	local status=0
	"$1" --no-such-option </dev/null || status=$?
	[ "$status" -gt 0 ] && [ "$status" -lt 126 ]
}
has_page() {
	[ -f "$here/../../doc/man/$(basename "$1").1" ]
}

# `build path -> installed path` of everything meson would put into bin/
while read -r tool; do
	name=$(basename "$tool")
	check "$name --help" helps "$tool"
	check "$name refuses an unknown option" refuses "$tool"
	check "$name has a manual page" has_page "$tool"
done < <(meson introspect --installed "$1" | python3 -c 'import json, sys
for built, installed in json.load(sys.stdin).items():
    if "/bin/" in installed:
        print(built)')

tap_done
