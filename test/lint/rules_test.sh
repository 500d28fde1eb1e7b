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
# the interpreter itself, and no more of it than the rules need: it starts a hundred times
python=$(python3 -c 'import sys; print(sys.executable)')
trap 'rm -rf "$tree"' EXIT

# A tree that keeps every rule.
fresh() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree"/{base,include,portals/{engine,job,api},nal/{shm,udp,net/dgram},mpi_shim/{core,coll/shm,rma},bench,doc/man}
	local head='/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors */'
	local file
	for file in include/portals3.h nal/nal.h nal/shm/shm.h nal/udp/udp.h nal/net/net.h nal/net/dgram/{a.c,a.h} \
		portals/engine/{a.c,ni.h} portals/job/{a.c,a.h} portals/api/{a.c,a.h} base/log.h nal/shm/a.c bench/a.c \
		base/a.c mpi_shim/core/{a.c,a.h} mpi_shim/coll/{a.c,a.h} \
		mpi_shim/coll/shm/{a.c,a.h} mpi_shim/rma/{a.c,a.h}; do
		echo "$head" >"$tree/$file"
	done
	printf '%s\nX {\nglobal:\n\tPtlInit;\nlocal:\n\t*;\n};\n' "$head" >"$tree/portals/libportals.map"
	printf '.Nm PtlInit\n' >"$tree/doc/man/PtlInit.3"
	echo "install_man('man/PtlInit.3')" >"$tree/doc/meson.build"
}

# The verdict of one rule on the tree: holds RULE, broken RULE.
verdict_of() {
	"$python" -S "$here/rules.py" "$tree" | sed -n "s/^\(ok\|not ok\) [0-9]* - $1\$/\1/p"
}
broken() {
	[ "$(verdict_of "$1")" = "not ok" ]
}
holds() {
	[ "$(verdict_of "$1")" = ok ]
}

all_hold() {
	"$python" -S "$here/rules.py" "$tree"
}

fresh
check "a tree that keeps the rules passes" all_hold

includes() {
	fresh
	echo "#include \"$2\"" >>"$tree/$1"
}
rule=includes_point_downwards
includes nal/shm/a.c portals/api/a.h
check "a transport may not include the calls" broken $rule
includes nal/shm/a.c portals/engine/ni.h
check "a transport may include the engine" holds $rule
includes nal/shm/a.c nal/udp/udp.h
check "a transport may not include another" broken $rule
includes nal/shm/a.c shm.h
check "a transport may include its own headers" holds $rule
includes nal/shm/a.c ../nal.h
check "a transport may include the contract, by any path" holds $rule
includes base/a.c nal/nal.h
check "base may not include the layers above" broken $rule
includes portals/api/a.c nal/shm/shm.h
check "the calls may not include a transport" broken $rule
includes portals/engine/a.c nal/nal.h
check "the engine may include the contract" holds $rule
includes nal/net/dgram/a.c nal/net/net.h
check "a folder in a folder of transports is a layer of its own" broken $rule
includes bench/a.c portals/engine/ni.h
check "a benchmark may not include the inside" broken $rule
includes bench/a.c portals3.h
check "a benchmark may include public headers" holds $rule

rule=no_include_goes_up
includes portals/engine/a.c portals/api/a.h
check "the engine may not include the calls" broken $rule
includes portals/job/a.c portals/api/a.h
check "nor may the job" broken $rule
includes portals/api/a.c portals/job/a.h
check "the calls may include the job" holds $rule
includes mpi_shim/core/a.c mpi_shim/coll/a.h
check "a room may not include a higher one" broken $rule
includes mpi_shim/core/a.h ../coll/shm/a.h
check "nor may its headers, by any path" broken $rule
includes mpi_shim/rma/a.c mpi_shim/coll/shm/a.h
check "a room may include lower ones" holds $rule
includes mpi_shim/coll/a.h mpi_shim/coll/shm/a.h
check "a room may include what lies in it" holds $rule
includes mpi_shim/coll/shm/a.c mpi_shim/coll/a.h
check "what lies in a room may include it" holds $rule
fresh
cp "$tree/mpi_shim/core/a.c" "$tree/mpi_shim/a.c"
check "a source outside of all rooms is seen" broken $rule

# Runs main() of a checker here with a table of exceptions: with TABLE=EDGE CHECKER ARGUMENT...
with() {
	python3 - "$here" "$@" <<-'END'
		import importlib, sys
		here, row, name, *args = sys.argv[1:]
		sys.path.insert(0, here)
		checker = importlib.import_module(name)
		table, edge = row.split('=')
		setattr(checker, table, {edge: 'why'} if edge else {})
		import pathlib, rules
		rules.ROOT = pathlib.Path(args[0]).resolve()
		sys.argv[1:] = args
		sys.exit(checker.main())
	END
}
with_not() {
	! with "$@"
}
edge="mpi_shim/core/a.c -> mpi_shim/coll/a.h"
includes mpi_shim/core/a.c mpi_shim/coll/a.h
check "an exception lets an include go up" with "INCLUDES_UP=$edge" rules "$tree"
fresh
check "an exception that nothing needs is seen" with_not "INCLUDES_UP=$edge" rules "$tree"

# compiles FILE TEXT: to the object that meson makes of it, next to the meson.build of mpi_shim/ or of the root
compiles() {
	local where=$tree/build file=$1 object
	[ "${file#mpi_shim/}" = "$file" ] || where=$where/mpi_shim file=${file#mpi_shim/}
	object=$where/libx.a.p/${file//\//_}.o
	mkdir -p "$where/libx.a.p"
	echo "$2" | ${CC:-cc} -x c -c -o "$object" -
}
# calls CALLER CALLEE: both have objects, and the one calls the other
calls() {
	fresh
	compiles "$1" 'void callee(void); void caller(void) { callee(); }'
	compiles "$2" 'void callee(void) { }'
}
calls mpi_shim/core/a.c mpi_shim/coll/shm/a.c
edge="mpi_shim/core/a.c -> mpi_shim/coll/shm/a.c"
check "a room may not call a higher one" with_not CALLS_UP= calls "$tree" "$tree/build"
check "an exception lets a call go up" with "CALLS_UP=$edge" calls "$tree" "$tree/build"
calls mpi_shim/rma/a.c mpi_shim/coll/shm/a.c
check "a room may call lower ones" with CALLS_UP= calls "$tree" "$tree/build"
calls nal/shm/a.c portals/engine/a.c
check "a transport may call the engine" with CALLS_UP= calls "$tree" "$tree/build"
calls nal/shm/a.c portals/api/a.c
check "a transport may not call the calls" with_not CALLS_UP= calls "$tree" "$tree/build"
calls mpi_shim/rma/a.c mpi_shim/coll/shm/a.c
check "an exception that no call needs is seen" with_not "CALLS_UP=$edge" calls "$tree" "$tree/build"

rule=no_two_static_functions_share_a_name
# defines FILE TEXT: a static function and what else stands there
defines() {
	printf 'static int %s(int a,\n\tint b)\n{\n}\n%s\n' "$2" "${3-}" >>"$tree/mpi_shim/$1"
}
fresh
defines core/a.c take
defines rma/a.c '__attribute__((noinline)) take'
check "static functions that share a name are seen" broken $rule
fresh
defines core/a.c take
defines rma/a.c give
check "static functions may have names of their own" holds $rule
fresh
defines core/a.c take 'struct table t = { .take = take };'
defines rma/a.c take 'struct table t = { .take = take };'
check "they may share that of a table's operation" holds $rule

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

rule=no_name_has_a_word_of_our_own
fresh
echo 'int mpi_hub_size;' >>"$tree/base/a.c"
check "a word that the field has another one for is seen" broken $rule
fresh
echo 'int both_ways; /* a hub */' >>"$tree/base/a.c"
check "one with another meaning is right, and comments are no names" holds $rule

rule=no_sentence_of_a_comment_is_long
long=$(seq 36 | tr '\n' ' ')
fresh
echo "/* $long */" >>"$tree/base/a.c"
check "a sentence of 36 words in a comment is seen" broken $rule
fresh
echo "/* ${long% 36*}. And another. */" >>"$tree/base/a.c"
check "one of 35 words passes" holds $rule

rule=no_sentence_of_a_comment_begins_with_a_pronoun
fresh
echo '/* Right. What comes is counted. */' >>"$tree/bench/a.c"
check "a sentence that begins with What for a thing is seen" broken $rule
fresh
echo '/* Whatever comes is counted. What else? */' >>"$tree/bench/a.c"
check "a question is right" holds $rule

rule=every_nolint_stands_on_the_line_before
fresh
printf '/* NOLINTNEXTLINE(x): because\n * of that */\nint x;\n' >>"$tree/bench/a.c"
check "a reason of two lines behind NOLINTNEXTLINE is seen" broken $rule
fresh
printf '/* NOLINTNEXTLINE(x): because */\nint x;\n' >>"$tree/bench/a.c"
check "one of one line is right" holds $rule

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

words() {
	local i
	for ((i = 0; i < $1; i++)); do
		echo word
	done
}
rule=documents_name_what_exists
fresh
# shellcheck disable=SC2016 # these are Markdown's backquotes
printf 'see `nal/nal.h`, `nal/{shm,udp}/` and [it](../base/log.h); `build/x/y` and `a/NAME` are not there\n\n    nal/shm/shm.h\n' \
	>"$tree/doc/page.md"
check "a document may name what exists" holds $rule
# shellcheck disable=SC2016
for line in 'see `nal/none.h`' 'see `nal/{shm,none}/`' '[it](none.md)' '    nal/shm/none.h'; do
	fresh
	echo "$line" >"$tree/doc/page.md"
	check "what does not exist is seen: $line" broken $rule
done

rule=the_map_is_short
fresh
words 1700 >"$tree/doc/architecture.md"
check "a map may have 1,700 words" holds $rule
words 1 >>"$tree/doc/architecture.md"
check "a longer map is seen" broken $rule
printf '## Invariants\n\n1. %s\n\n2. %s\n' "$(words 80)" "$(words 80)" >"$tree/doc/architecture.md"
check "an invariant may have 80 words" holds $rule
printf '## Invariants\n\n1. %s\n\n2. %s\n' "$(words 80)" "$(words 81)" >"$tree/doc/architecture.md"
check "a longer invariant is seen" broken $rule

rule=sentences_of_documents_are_short
fresh
printf '%s.\n\n * A %s.\n * B %s.\n\n    %s\n' "$(words 35)" "$(words 34)" "$(words 34)" "$(words 40 | tr '\n' ' ')" \
	>"$tree/doc/page.md"
check "sentences of 35 words, items and pictures pass" holds $rule
fresh
words 36 >"$tree/doc/page.md"
check "a longer sentence is seen" broken $rule

tap_done
