#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# ptlperf measures something in every test, alone and in a job, and refuses what it cannot do. The
# figures themselves are not judged here; that every byte arrives is checked by ptlperf.
# Usage: ptlperf_test.sh PTLPERF MPIEXEC [some]; `some` leaves out what takes minutes on a busy machine
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
ptlperf=$1
mpiexec=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# others may need the cores as well: nothing is missing before it is late
short=(--quick --min-time 1 --repeat 1 --no-pin --deadline 120)

# A test's figures, or those of one variant, are all above zero: figures JSON TEST[/VARIANT]...
figures() {
	python3 - "$@" <<-'END'
		import json, sys
		results = json.load(open(sys.argv[1]))['results']
		for name in sys.argv[2:]:
		    test, _, variant = name.partition('/')
		    medians = [r['median'] for r in results
		               if r['test'] == test and variant in ('', r.get('variant'))]
		    print(name, medians)
		    # overheads are differences of two figures: on a busy machine one may come out below zero
		    least = max if name in ('loggp/os', 'loggp/or') else min
		    if not medians or least(medians) <= 0:
		        sys.exit(1)
	END
}
all_tests() {
	"$ptlperf" "${short[@]}" --sizes 0,1,8,4K,64K --entries 20 --json "$dir/all.json" all &&
		figures "$dir/all.json" floor latency bandwidth bidirectional rate 'get latency' \
			'get bandwidth' 'getput latency' match receives calls bypass \
			model 'model parameter/one way' 'loggp/round trip' loggp/os loggp/or rwapi \
			'rwapi throughput'
}
polling() {
	"$ptlperf" "${short[@]}" --poll --sizes 8 --json "$dir/poll.json" latency &&
		figures "$dir/poll.json" latency
}
long_messages() {
	"$ptlperf" "${short[@]}" --sizes 100000,4M,5000001 latency bandwidth bidirectional get
}
# For packets that were measured the model gives the measured time, but for L in between.
model_of_packets() {
	"$ptlperf" "${short[@]}" --min-time 5 --packet 4K --sizes 8,4K --json "$dir/model.json" model &&
		python3 - "$dir/model.json" <<-'END'
			import json, sys
			results = json.load(open(sys.argv[1]))['results']
			value = {(r['test'], r.get('variant'), r['size']): r['median'] for r in results}
			# so that a prediction from cores far apart is not laid beside figures of near ones
			lines = {'cacheline_worst' in r for r in results if r['test'].startswith('model')}
			if len(lines) != 1:
			    sys.exit('some figures say how far apart the cores were, some do not')
			for size in (8, 4096):
			    part = {name: value['model parameter', name, size] for name in ('Os', 'Or', 'Ur', 'L')}
			    print(size, part, value['model', 'predicted', size])
			    if abs(value['model', 'predicted', size] / sum(part.values()) - 1) > 0.01:
			        sys.exit(1)
			if ('model parameter', 'Os', 64) not in value:
			    sys.exit('no packet of 64 bytes')
		END
}
in_a_job() {
	"$mpiexec" -n 2 "$ptlperf" "${short[@]}" --sizes 8,64K --json "$dir/job.json" latency bw &&
		figures "$dir/job.json" latency bandwidth
}
json_alone() {
	"$ptlperf" "${short[@]}" --sizes 8 --json - latency 2>/dev/null >"$dir/stdout.json" &&
		figures "$dir/stdout.json" latency
}
# refused STATUS MESSAGE COMMAND...: ends with that status and that message
refused() {
	local want=$1 message=$2 status=0 output
	shift 2
	output=$("$@" 2>&1) || status=$?
	echo "status $status: $output"
	[ "$status" -eq "$want" ] && grep -q -e "$message" <<<"$output"
}

[ "${3:-}" = some ] || check "every test gives figures, and targets are bypassed" all_tests
check "polling for events works too" polling
check "long messages of odd lengths arrive" long_messages
[ "${3:-}" = some ] || check "the model adds up its parameters" model_of_packets
check "a job of two ranks is measured" in_a_job
check "JSON on standard output is nothing but JSON" json_alone
check "a job of three ranks is refused" refused 1 'needs a job of 2 ranks' \
	"$mpiexec" -n 3 "$ptlperf" "${short[@]}" latency
check "an unknown test is refused" refused 2 "no test 'speed'" "$ptlperf" speed
check "a size that is none is refused" refused 2 'is not a number' "$ptlperf" -s 8,x latency
check "a packet of nothing is refused" refused 2 'not a number from 16' \
	"$ptlperf" --packet 0 model
check "a size that is too long is refused" refused 2 'largest possible' "$ptlperf" -s 1000M latency
check "an unwritable file is reported" refused 1 'cannot write' \
	"$ptlperf" "${short[@]}" --sizes 8 --json "$dir/none/x" latency
tap_done
