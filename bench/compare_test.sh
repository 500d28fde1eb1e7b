#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# bench/compare tells what changed from noise, by figures that are made up and known.
# Usage: compare_test.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# made_up FILE SEED ROUNDS [MPI TEST SIZE|all FACTOR]: a report with 3 % of noise, in which something takes
# FACTOR as long, or has the FACTOR-th part of its rate
made_up() {
	python3 - "$@" <<-'END'
		import json, random, sys
		path, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		mpi, test, size, factor = (*sys.argv[4:], '', '', '', '1')[:4]
		rng = random.Random(seed)
		figures = []
		for number in range(1, rounds + 1):
		    for name in ('postern', 'mpich', 'openmpi', 'portals'):
		        for what, unit, base in (('latency', 'ns', 200), ('bandwidth', 'GB/s', 40),
		                                 ('rate', 'M/s', 15)):
		            for bytes_ in (8, 1024, 65536) if what != 'rate' else (8,):
		                value = base * (1 + bytes_ / 1e5) * rng.gauss(1, 0.03)
		                if (mpi, test) == (name, what) and size in ('all', str(bytes_)):
		                    value = value * float(factor) if unit == 'ns' else value / float(factor)
		                figures.append({'mpi': name, 'round': number, 'test': what, 'variant': '',
		                                'size': bytes_, 'ranks': 2, 'unit': unit, 'median': value,
		                                'p99': value, 'best': value})
		mpis = [{'name': n, 'title': n, 'mpicc': 'mpicc', 'launch': []}
		        for n in ('postern', 'mpich', 'openmpi')]
		json.dump({'format': 1, 'program': 'report', 'date': '2026-01-01T00:00:00+00:00', 'cpu': 'any',
		           'cores': [0, 1], 'load': 0, 'rounds': rounds, 'mpis': mpis, 'left_out': [],
		           'results': figures}, open(path, 'w'))
	END
}
# compared STATUS PATTERN OPTION...: before.json with after.json
compared() {
	local want=$1 pattern=$2 status=0 output
	shift 2
	output=$("$here/compare" "$@" "$dir/before.json" "$dir/after.json" 2>&1) || status=$?
	printf '%s\n' "status $status" "$output"
	[ "$status" -eq "$want" ] && grep -q -e "$pattern" <<<"$output"
}
# after STATUS PATTERN WHAT...: what made_up() makes of it
after() {
	local want=$1 pattern=$2
	shift 2
	made_up "$dir/after.json" 2 5 "$@" && compared "$want" "$pattern"
}
noise_alone() {
	local seed
	for seed in 11 12 13 14 15 16 17 18; do
		made_up "$dir/after.json" "$seed" 5
		compared 0 '^0 worse' || return
	done
}
too_few() {
	made_up "$dir/after.json" 2 2
	compared 2 'cannot tell anything from chance'
}
other_format() {
	echo '{"tool": "ptlperf"}' >"$dir/after.json"
	compared 2 'not written by'
}
nothing_shared() {
	made_up "$dir/after.json" 2 5
	sed -i 's/"latency"/"one"/g; s/"bandwidth"/"two"/g; s/"rate"/"three"/g' "$dir/after.json"
	compared 2 'no figures of the same'
}
no_file() {
	rm -f "$dir/after.json"
	compared 2 'No such file'
}
# The probability is that of counting all cases, ties and all.
exact() {
	PYTHONDONTWRITEBYTECODE=1 python3 - "$here/compare" <<-'END'
		import importlib.machinery, importlib.util, itertools, sys
		loader = importlib.machinery.SourceFileLoader('compare', sys.argv[1])
		compare = importlib.util.module_from_spec(importlib.util.spec_from_loader('compare', loader))
		loader.exec_module(compare)
		def counted(before, after):
		    ranks = compare.ranks_of([*before, *after])
		    seen = sum(ranks[len(before):])
		    sums = [sum(c) for c in itertools.combinations(ranks, len(after))]
		    return sum(s >= seen for s in sums) / len(sums)
		assert compare.ranks_of([5, 5, 1, 9]) == [5, 5, 2, 8]
		assert abs(compare.chance([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) - 1 / 252) < 1e-12
		assert compare.chance([1, 1], [1, 1]) == 1
		for before, after in (([1, 5, 3], [2, 4]), ([2, 2, 7, 1], [2, 9, 9]), ([3.5], [1, 2, 3.5]),
		                      ([1, 2, 3, 4, 5, 6], [2, 3, 3, 8, 9, 1])):
		    print(before, after, compare.chance(before, after))
		    assert abs(compare.chance(before, after) - counted(before, after)) < 1e-12
	END
}

made_up "$dir/before.json" 1 5
check "noise is no regression" noise_alone
check "a curve that takes 10 % longer is one" \
	after 1 '^postern, latency.* worse$' postern latency all 1.1
check "a bandwidth that falls is one" after 1 '^postern, bandwidth.* worse$' postern bandwidth all 1.12
check "so is a rate of a single point" after 1 '^Portals, message rate.* worse$' \
	portals rate 8 1.15
check "a point that takes 40 % longer is one, and named" \
	after 1 '^  postern, latency.*at 1 KiB.* worse$' postern latency 1024 1.4
check "a point that takes 10 % longer is not" after 0 '^0 worse' postern latency 1024 1.1
check "what gets better is told" after 0 ' 1 better' postern latency all 0.85
check "another MPI that gets worse is shown, not judged" \
	after 0 '^mpich, latency.* worse$' mpich latency all 1.3
check "too few rounds are refused" too_few
check "chance is counted exactly" exact
check "a file of another kind is refused" other_format
check "files with nothing in common are refused" nothing_shared
check "a missing file is refused" no_file
tap_done
