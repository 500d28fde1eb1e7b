#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Does rules.py see what it is there for? Breaks each rule in a small tree of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# A tree that keeps every rule.
fresh() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree"/{base,include,portals,nal/shm,nal/udp,bench,doc/man}
	local head='/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors */'
	local file
	for file in include/portals3.h nal/nal.h nal/shm/shm.h nal/udp/udp.h portals/ni.h portals/match.h base/log.h \
		nal/shm/a.c portals/a.c bench/a.c base/a.c; do
		echo "$head" >"$tree/$file"
	done
	printf '%s\nX {\nglobal:\n\tPtlInit;\nlocal:\n\t*;\n};\n' "$head" >"$tree/portals/libportals.map"
	printf '.Nm PtlInit\n' >"$tree/doc/man/PtlInit.3"
	echo "install_man('man/PtlInit.3')" >"$tree/doc/meson.build"
}

# The verdict of one rule on the tree: holds RULE, broken RULE.
verdict_of() {
	python3 "$here/rules.py" "$tree" | sed -n "s/^\(ok\|not ok\) [0-9]* - $1\$/\1/p"
}
broken() {
	[ "$(verdict_of "$1")" = "not ok" ]
}
holds() {
	[ "$(verdict_of "$1")" = ok ]
}

all_hold() {
	python3 "$here/rules.py" "$tree"
}

fresh
check "a tree that keeps the rules passes" all_hold

includes() {
	fresh
	echo "#include \"$2\"" >>"$tree/$1"
}
rule=includes_point_downwards
includes nal/shm/a.c portals/match.h
check "a transport may not include the objects" broken $rule
includes nal/shm/a.c portals/ni.h
check "a transport may include the engine's face" holds $rule
includes nal/shm/a.c nal/udp/udp.h
check "a transport may not include another" broken $rule
includes nal/shm/a.c shm.h
check "a transport may include its own headers" holds $rule
includes nal/shm/a.c ../nal.h
check "a transport may include the contract, by any path" holds $rule
includes base/a.c nal/nal.h
check "base may not include the layers above" broken $rule
includes portals/a.c nal/shm/shm.h
check "the core may not include a transport" broken $rule
includes portals/a.c nal/nal.h
check "the core may include the contract" holds $rule
includes bench/a.c portals/ni.h
check "a benchmark may not include the inside" broken $rule
includes bench/a.c portals3.h
check "a benchmark may include public headers" holds $rule

fresh
echo 'char *x = getenv("X");' >>"$tree/bench/a.c"
check "getenv outside base/config.c is seen" broken the_environment_is_read_in_one_place
fresh
echo 'char *x = getenv("X");' >"$tree/base/config.c"
check "getenv in base/config.c is allowed" holds the_environment_is_read_in_one_place

fresh
printf 'see /%s/someone/file\n' home >"$tree/doc/note.md"
check "a path of one machine is seen" broken no_path_of_one_machine

fresh
echo 'int x;' >"$tree/bench/a.c"
check "a source without licence line is seen" broken every_source_names_its_licence

fresh
rm "$tree/doc/man/PtlInit.3"
check "a function without manual page is seen" broken every_public_function_has_a_page

rule=every_page_is_installed_and_aliases_lead_somewhere
fresh
: >"$tree/doc/man/extra.3"
check "a page that is not installed is seen" broken $rule
fresh
echo ".so man3/PtlNone.3" >"$tree/doc/man/PtlInit.3"
check "an alias of no page is seen" broken $rule

tap_done
