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
# Long options of the usage text that the page does not have; pages write --quick as Fl Fl quick or Fl -quick, and
# may be another name of a page.
page_knows_options() {
	local file page missing
	file=$here/../../doc/man/$(basename "$1").1
	page=$(sed -n 's,^\.so man1/,,p' "$file")
	page=$(sed 's/Fl Fl /--/g; s/Fl -/--/g' "${page:+$here/../../doc/man/}${page:-$file}")
	missing=$("$1" --help </dev/null | grep -oE -- '(^|[^-[:alnum:]])--[a-z][a-z-]*' | grep -oE -- '--.*' |
		sort -u | while read -r option; do
		grep -qE -- "$option([^a-z-]|\$)" <<<"$page" || echo "$option"
	done)
	echo "$missing"
	[ -z "$missing" ]
}

# `build path -> installed path` of everything meson would put into bin/
while read -r tool; do
	name=$(basename "$tool")
	check "$name has a manual page" has_page "$tool"
	[[ $tool == /* ]] || continue # another name of an installed tool, and not in the build tree
	check "$name --help" helps "$tool"
	check "$name refuses an unknown option" refuses "$tool"
	check "$name: its page has all options of --help" page_knows_options "$tool"
done < <(meson introspect --installed "$1" | python3 -c 'import json, sys
for built, installed in json.load(sys.stdin).items():
    if "/bin/" in installed:
        print(built)')

tap_done
