#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# comb compiles without warnings with every MPI there is, gives all its figures as JSON, and refuses what
# it cannot do; comb/run measures all MPIs, and judges as it says. The figures themselves are not judged
# here, beyond what cannot be otherwise.
# Usage: comb_test.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mpiexec=$build/tools/mpiexec/mpiexec
comb=$dir/comb
run=("$here/comb/run" --prefix "$build")
short=(--time 1 --batch 3)

# compiles MPICC: as its users do, but for the warnings
compiles() {
	"$1" -O2 -Wall -Wextra -Wshadow -Werror -o "$comb.$(basename "$1")" "$here"/comb/*.c \
		"$here/ptlperf/clock.c" "$here/ptlperf/stats.c"
}
# Each figure has its values, and they fit together: figures JSON TEST:VARIANT:SIZE:X...
figures() {
	python3 - "$@" <<-'END'
		import json, sys
		report = json.load(open(sys.argv[1]))
		assert (report['format'], report['program']) == (1, 'comb'), report
		wanted = {'comb_pww': {'work_dry', 'work', 'post', 'wait', 'transfer', 'availability',
		                       'work_availability', 'cpu_availability', 'wait_share', 'bandwidth'},
		          'comb_polling': {'work_dry', 'time', 'availability', 'cpu_availability', 'bandwidth'}}
		found = []
		for f in report['results']:
		    values = f['values']
		    print(f)
		    assert set(values) == wanted[f['test']]
		    positive = set(values) - {'wait', 'wait_share', 'bandwidth'}
		    assert all(values[name] > 0 for name in positive)
		    assert f['unit'] == '%' and f['median'] == values['availability']
		    assert f['p99'] <= f['median'] <= f['best'] and f['ranks'] == 2
		    assert f['variant'].split()[0] == f['side']
		    assert ('test' in f['variant']) == (f['tests'] == 1)
		    assert ('memory' in f['variant']) == (f['work_kind'] == 'memory')
		    if f['test'] == 'comb_pww':
		        assert values['bandwidth'] > 0
		    found.append(f"{f['test']}:{f['variant']}:{f['size']}:{f['x']}")
		assert found == sys.argv[2:], found
	END
}
# comb under our mpiexec
ours() {
	"$mpiexec" -n 2 "$comb.mpicc" "${short[@]}" "$@"
}
every_side() {
	ours --side receive,send,both --size 10K,100000 --interval 20 --tests 0 \
		--json "$dir/sides.json" &&
		figures "$dir/sides.json" comb_pww:{receive,send,both}:{10240,100000}:20000 \
			comb_polling:{receive,send,both}:{10240,100000}:20000
}
every_work() {
	ours pww --size 100K --interval 5,50.5 --work compute,memory --array 64K --json "$dir/work.json" &&
		figures "$dir/work.json" comb_pww:receive{,' test',' memory',' test memory'}:102400:{5000,50500}
}
own_intervals() {
	ours --size 4M --batch 1 --tests 1 --json "$dir/own.json" &&
		figures "$dir/own.json" \
			'comb_pww:receive test:4194304:'{262144,524288,1048576,2097152,4194304,8388608} \
			comb_polling:receive:4194304:{65536,262144,524288,1048576,2097152,4194304,16777216}
}
json_alone() {
	ours pww --size 10K --interval 5 --tests 0 --json - 2>"$dir/tables" >"$dir/stdout.json" &&
		figures "$dir/stdout.json" comb_pww:receive:10240:5000 && grep -q '^== post' "$dir/tables"
}
# The phases are told apart: 0.1 us of work is next to nothing beside ten messages of 100 KiB.
measures_the_wait() {
	ours pww --size 100K --interval 0.1 --tests 0 --json "$dir/none.json"
	python3 - "$dir/none.json" <<-'END'
		import json, sys
		figure = json.load(open(sys.argv[1]))['results'][0]
		values = figure['values']
		print(values)
		assert figure['median'] < 50 and values['wait'] > values['work']
	END
}
help_alone() {
	local output
	output=$("$comb.mpicc" --help) && grep -q '^usage: ' <<<"$output" &&
		output=$("${run[@]}" --help) && grep -q '^usage: ' <<<"$output"
}
# refused STATUS MESSAGE COMMAND...: ends with that status and that message
refused() {
	local want=$1 message=$2 status=0 output
	shift 2
	output=$("$@" 2>&1) || status=$?
	echo "status $status: $output"
	[ "$status" -eq "$want" ] && grep -q -e "$message" <<<"$output"
}
every_mpi() {
	local names=(postern) name
	for name in mpich openmpi; do
		! command -v "mpicc.$name" >/dev/null || names+=("$name")
	done
	"${run[@]}" --quick --interval 30 --progress --json "$dir/run.json" 2>"$dir/progress" && python3 - "$dir/run.json" "${names[@]}" <<-'END'
		import json, sys
		report = json.load(open(sys.argv[1]))
		names = sys.argv[2:]
		assert (report['format'], report['program'], report['left_out']) == (1, 'comb', [])
		assert [mpi['name'] for mpi in report['mpis']] == names
		found = [(f['mpi'], f['test'], f['size'], f['round']) for f in report['results']]
		assert found == [(name, test, 102400, 1) for test in ('comb_pww', 'comb_polling')
		                 for name in names], found
	END
}
says_how_far() {
	local runs
	cat "$dir/progress"
	runs=$(wc -l <"$dir/progress")
	# one method, then the other one, with each MPI
	[ $((runs % 2)) -eq 0 ] &&
		grep -qx "progress 0 $runs -1 round 1 of 1: pww receive 100K, postern" "$dir/progress" &&
		grep -qEx "progress $((runs / 2)) $runs [0-9]+ round 1 of 1: polling receive 100K, postern" \
			"$dir/progress"
}
over_a_network() {
	local both=()
	[ "$(nproc)" -ge 4 ] || both=('comb_pww:receive over udp, both cores:102400:30000')
	"${run[@]}" --quick --mpi postern --method pww --interval 30 --over udp --json "$dir/over.json" &&
		figures "$dir/over.json" comb_pww:receive:102400:30000 'comb_pww:receive over udp:102400:30000' \
			"${both[@]}"
}
# The verdict on invented figures: verdict WANTED..., figures as "x transfer availability wait".
verdict() {
	PYTHONDONTWRITEBYTECODE=1 python3 - "$here" "$(cat)" >"$dir/verdict" <<-'END'
		import sys
		sys.path[:0] = [sys.argv[1] + '/comb', sys.argv[1] + '/lib']
		import show
		figures = []
		for line in sys.argv[2].splitlines():
		    x, transfer, availability, wait = map(float, line.split())
		    values = dict.fromkeys(('work_availability', 'cpu_availability'), 99.0)
		    values.update(transfer=transfer, availability=availability, wait_share=wait)
		    figures.append({'mpi': 'postern', 'round': 1, 'test': 'comb_pww', 'variant': 'receive',
		                    'size': 102400, 'ranks': 2, 'x': x, 'batch': 10, 'values': values})
		show.print_all(figures, {'postern': 'Ours'})
	END
	cat "$dir/verdict"
	for wanted in "$@"; do
		grep -q -e "$wanted" "$dir/verdict" || return
	done
}
worst_long_enough() {
	verdict 'availability .* 96.5 %  MISSED$' 'wait .* 4.0 %  met$' <<-END
		10000 10000 40 99
		40000 10000 99 2
		80000 10000 96.5 4
	END
}
median_of_rounds() {
	verdict 'availability .* 98.0 %  met$' 'wait .* 6.0 %  MISSED$' <<-END
		40000 10000 98 6
		40000 10000 12 60
		40000 10000 99 5
	END
}

check "it compiles with our mpicc, without a warning" compiles "$build/tools/mpicc/mpicc"
for mpi in mpich openmpi; do
	if command -v "mpicc.$mpi" >/dev/null; then
		check "it compiles with mpicc.$mpi, without a warning" compiles "mpicc.$mpi"
	else
		tap_skip "it compiles with mpicc.$mpi, without a warning" "there is none"
	fi
done
check "every side is measured by both methods" every_side
check "every kind of work is measured, with and without MPI_Test" every_work
check "intervals are chosen by the size" own_intervals
check "JSON on standard output is nothing but JSON" json_alone
check "with hardly any work nearly everything is waiting" measures_the_wait
check "--help tells how to use it" help_alone
check "a job of three ranks is refused" refused 1 'needs 2 ranks, not 3' "$mpiexec" -n 3 "$comb.mpicc"
check "an unknown method is refused" refused 2 "no 'pull'; there are pww polling" ours pull
check "an unknown side is refused" refused 2 "no 'left'; there are receive send both" \
	ours --side receive,left
check "an unknown option is refused" refused 2 "no option '--fast'" ours --fast
check "an option without its value is refused" refused 2 'its value is missing' ours --size
check "a size that is none is refused" refused 2 "'x' is not a whole number from 4 to" ours --size 10K,x
check "an empty list is refused" refused 2 "'' is not a number" ours --interval ''
check "no messages are refused" refused 2 'not a whole number from 1 to 64' ours --batch 0
check "half a message is refused" refused 2 "'1.5' is not a whole number" ours --batch 1.5
check "more than a GiB is refused" refused 2 'more than 1 GiB' ours --size 64M --batch 64
check "a list that is too long is refused" refused 2 'more than 32 values' \
	ours --interval "$(seq -s , 1 40)"
check "an unwritable file is reported at once" refused 1 'cannot write .*No such file' \
	ours --json "$dir/none/x"
check "every MPI that is here is measured by comb/run" every_mpi
check "--progress tells programs how far it is" says_how_far
check "ours is measured over a network as well when that is asked for" over_a_network
check "an unknown network is refused by comb/run" refused 2 "no 'tcp'" "${run[@]}" --over tcp
check "what comb refuses, comb/run reports" refused 1 "postern, pww receive 100K: .*no 'rest'" \
	"${run[@]}" --quick --mpi postern --work rest
check "an unknown side is refused by comb/run" refused 2 "no 'left'" "${run[@]}" --side left
check "the target is judged by the worst of the rows that count" worst_long_enough
check "a figure is the median of the rounds" median_of_rounds
tap_done
