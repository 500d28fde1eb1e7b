#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The options of other launchers: each is understood or refused by name, and the page has the same table as the
# program. Usage: test_mpiexec_habits.sh MPIEXEC PAGE
# shellcheck disable=SC2016 # the ranks' shells expand, not ours
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
page=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID MPIEXEC_TIMEOUT "${!PTL_@}" "${!SLURM_@}"
unset OMP_NUM_THREADS OMP_THREAD_LIMIT # which nproc follows

# run ARGS...: mpiexec under a limit; leaves status, $dir/out, $dir/err.
run() {
	status=0
	timeout -k 5 60 "$mpiexec" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}
# need COMMAND...: the case fails, and shows what was seen, unless this succeeds.
need() {
	"$@" && return
	echo "not so: $*"
	echo "status ${status-none yet}; stdout:"
	cat "$dir/out"
	echo "stderr:"
	cat "$dir/err"
	exit 1
}
status_is() { [ "$status" -eq "$1" ]; }
out_is() { [ "$(cat "$dir/out")" = "$1" ]; }
sorted_out_is() { [ "$(sort "$dir/out")" = "$1" ]; }
err_has() { grep -Eq -- "$1" "$dir/err"; }
err_is_empty() { [ ! -s "$dir/err" ]; }

# ---- the table -----------------------------------------------------------------------------------

# The rows of the page, as the program prints them.
page_rows() {
	sed -n '/^\.Ss Habits/,/^\.El/p' "$page" | sed 's/\\-/-/g' |
		sed -n '/^\.It "/{s/^\.It "\(.*\)"$/\1/;N;s/\n/\t/;p;}'
}
same_table() {
	run --help habits
	need status_is 0
	page_rows >"$dir/page"
	diff "$dir/out" "$dir/page"
}
# A value that an option with these words takes.
value_for() {
	case $1 in
	*-host | *-hosts | -H | -w | *--nodelist) echo localhost ;;
	*hostfile | *machinefile | *machine-file | -f) echo "$dir/hosts" ;;
	*-arch) uname -m ;;
	*--export) echo ALL ;;
	*-launcher | *-bootstrap) echo fork ;;
	*-configfile | *--app) echo "$dir/config" ;;
	*bind-to | *cpu-bind | *-binding) echo core ;;
	*-map-by | *-rank-by) echo slot ;;
	*-cpu-list) taskset -pc $$ | sed 's/.*: //; s/[,-].*//' ;;
	*-output) echo tag ;;
	*-wdir | *-wd | *working-dir | -D | *chdir) echo "$dir" ;;
	*-path) echo "$PATH" ;;
	*file* | -o | -e | *--error) echo "$dir/file" ;;
	*) case $2 in
		N | SET) echo 1 ;;
		RANKS) echo 0 ;;
		SECONDS) echo 1000 ;;
		*) echo x ;;
		esac ;;
	esac
}
# Each name of each row, with one dash where the table has two, or two: it starts the program, or says what to write instead.
every_name() {
	local names text name words word args expected
	run --help habits
	echo localhost >"$dir/hosts"
	echo 'true' >"$dir/config"
	cp "$dir/out" "$dir/table"
	while IFS=$'\t' read -r names text; do
		expected=0
		[[ $text != refused:* ]] || expected=2
		while read -r name words; do
			args=()
			for word in $words; do
				args+=("$(value_for "$name" "$word")")
			done
			[[ $name == --* ]] && name=${name#-} || name=-$name
			[[ $name == *-configfile || $name == *-app ]] || args+=(true)
			run "$name" ${args[@]+"${args[@]}"}
			need status_is "$expected"
			[ "$expected" -eq 0 ] || need err_has 'is not done here: .+'
			[[ $text != ignored:* ]] || need err_has 'is ignored: .+'
			[[ $text != accepted:* ]] || need err_is_empty
		done <<<"${names//, -/$'\n'-}"
	done <"$dir/table"
	need [ "$(wc -l <"$dir/table")" -ge 80 ]
}
check 'the page has the table that the program has' same_table
check 'every name is understood or refused with a remedy' every_name

# ---- numbers, hosts, environment -----------------------------------------------------------------

# ranks N ARGS...: there are N
ranks() {
	local n=$1
	shift
	run "$@" sh -c 'echo $PMI_SIZE'
	need status_is 0
	need [ "$(sort -u "$dir/out")" = "$n" ]
	need [ "$(wc -l <"$dir/out")" -eq "$n" ]
}
refused() { # TEXT ARGS...
	local text=$1
	shift
	run "$@"
	need status_is 2
	need err_has "$text"
}
hostfile() { # N TEXT
	printf '%b' "$2" >"$dir/hosts"
	ranks "$1" -hostfile "$dir/hosts"
}
bad_hostfile() { # WHY TEXT
	printf '%b' "$2" >"$dir/hosts"
	refused "$1" -f "$dir/hosts" true
}
after_dashes() {
	ln -sf "$(type -P true)" "$dir/-n"
	run -path "$dir" -- -n
	need status_is 0
}
export_x() {
	ONE=1 run -n 1 -x ONE -x 'TWO=2 =' -x NOT_SET_HERE sh -c 'echo "$ONE $TWO${NOT_SET_HERE-}"'
	need out_is '1 2 ='
}
pass_none() {
	ONE=1 TWO=2 run "$@" sh -c 'echo "${ONE-}/${TWO-}/${SET-}"'
	need status_is 0
}
none_passed() {
	pass_none -genvnone -genv SET here
	need out_is '//here'
	pass_none -genvlist TWO,THREE
	need out_is '/2/'
	pass_none -genvnone -envall
	need out_is '1/2/'
	pass_none -envlist ONE -x SET=yes
	need out_is '1//yes'
	pass_none -envnone -x TWO
	need out_is '/2/'
}
timeout_variable() {
	MPIEXEC_TIMEOUT=1 run sleep 600
	need status_is 124
	need err_has '^mpiexec: 1 s are over; ending the job'
	MPIEXEC_TIMEOUT=1 run --timeout 50 true
	need status_is 0
	MPIEXEC_TIMEOUT=soon run true
	need status_is 2
	need err_has 'MPIEXEC_TIMEOUT=soon is no number of seconds'
}
allocation() {
	SLURM_JOB_ID=7 SLURM_NTASKS=3 ranks 3 -v
	SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 SLURM_TASKS_PER_NODE='4' ranks 4 -q
	SLURM_JOB_ID=7 SLURM_NTASKS=3 ranks 2 -n 2
	SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=262144 refused 'more than 16384 ranks' --launcher embedded -ppn 16384 true
	SLURM_NTASKS=3 ranks 1 -q
	SLURM_JOB_ID=7 SLURM_NTASKS=3x refused 'SLURM_NTASKS=3x is no number of Slurm' true
}
interface() {
	PTL_IFACE=lo run -iface eth0 -n 1 sh -c 'echo $PTL_IFACE' : -x PTL_IFACE=eth1 sh -c 'echo $PTL_IFACE'
	need status_is 0
	need sorted_out_is $'eth0\neth1'
	run -genv PTL_IFACE eth2 -iface eth0 sh -c 'echo $PTL_IFACE'
	need out_is eth2
	need err_is_empty
}
hint() {
	run --mca btl self,tcp true
	need status_is 0
	need err_has '--?mca btl is ignored: PTL_NAL names the transports'
	run -q --mca btl self,tcp true
	need err_is_empty
}
check '-n4' ranks 4 -n4
check '-np 2' ranks 2 -np 2
check '-c=3' ranks 3 -c=3
check '-ppn without -n' ranks 3 -ppn 3
check '--map-by ppr:2:node' ranks 2 --map-by ppr:2:node
check '-host without -n: one for each' ranks 2 -H localhost,localhost
check '-host NAME:N' ranks 5 -host localhost:3,127.0.0.1:2
check '-host and -ppn' ranks 4 -host localhost,127.0.0.1 -ppn 2
check '-n has precedence' ranks 1 -n 1 -host localhost:3
check 'a hostfile of MPICH' hostfile 4 '# mine\nlocalhost:3\n\n127.0.0.1 # and this\n'
check 'a hostfile of Open MPI' hostfile 7 'localhost slots=4 max_slots=8\r\n127.0.0.1 slots = 3\n'
check 'the most slots before the slots' hostfile 2 'localhost max_slots=2 slots=8\n'
check 'the most slots behind them' hostfile 2 'localhost slots=8 max_slots=2\n'
check 'a hostfile with an option in it' bad_hostfile 'line 2: "-oProxyCommand=x" is no name of a host' \
	'localhost\n-oProxyCommand=x\n'
check 'a hostfile with an unknown word' bad_hostfile 'line 1: "ifname=ib0" is not understood; write HOST' \
	'localhost ifname=ib0\n'
check 'an empty hostfile' bad_hostfile 'there is no host in the file' '# none\n'
check 'a hostfile that is not there' refused "$dir/none: No such file" -f "$dir/none" true
check '-nooversubscribe and hosts' refused '3 ranks are more than the 2 slots' \
	-nooversubscribe -host localhost:2 -n 3 true
check '-nooversubscribe and processors' refused 'ranks are more than the [0-9]+ processors' \
	-nooversubscribe -n $(($(nproc) + 1)) true
check '-- ends the options' after_dashes
check '-x' export_x
check '-genvnone and its kin' none_passed
check 'MPIEXEC_TIMEOUT' timeout_variable
check 'an allocation of Slurm with one node' allocation
check '-iface is PTL_IFACE of the ranks, but for those that have another' interface
check 'a parameter of Open MPI has a hint, and none with -q' hint

# ---- binding -------------------------------------------------------------------------------------

mask=(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
first_cpu=$("${mask[@]}" | sed 's/[,-].*//')
bound_to() { # LISTS ARGS...
	local lists=$1
	shift
	run "$@" -l "${mask[@]}"
	need status_is 0
	need [ "$(sort -V "$dir/out" | sed 's/^\[[0-9]*\] //')" = "$lists" ]
}
threads() {
	run --bind-to hwthread -n "$(nproc)" "${mask[@]}"
	need [ "$(sort -un "$dir/out" | wc -l)" -eq "$(nproc)" ]
}
# Two ranks on each of the units there are, however many that is.
all_units() {
	local unit
	for unit in socket numa l1cache l2cache l3cache; do
		run -l --bind-to "$unit" -n "$(nproc)" "${mask[@]}"
		need status_is 0
		need [ "$(sed 's/^\[[0-9]*\] //' "$dir/out" | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done |
			sort -nu)" = "$("${mask[@]}" | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done | sort -nu)" ]
	done
}
reported() {
	run --report-bindings --bind-to "user:$first_cpu" -n 2 true
	need err_has "^mpiexec: rank 1 is bound to processors $first_cpu\$"
	run --report-bindings --bind-to none -n 2 true
	need err_has '^mpiexec: rank 1 is not bound$'
}
check '--bind-to user' bound_to "$first_cpu"$'\n'"$first_cpu" --bind-to "user:$first_cpu" -n 2
check '--bind-to user with a processor that is not there' refused 'rank 0 would have a processor that is not there' \
	--bind-to user:99999 true
check '--bind-to hwthread' threads
for list in 0,,1 0+,1 0-1-2 0--1 3-2 0,-1; do
	check "--bind-to user:$list" refused 'processors, with commas between ranks' --bind-to "user:$list" true
done
check '--bind-to socket, numa and caches: all processors are in use' all_units
check '--map-by core:PE=N has as many' bound_to "$("${mask[@]}")" --map-by "slot:PE=$(nproc)" -n 1
check '--report-bindings' reported
check '--rank-by core' refused 'ranks are numbered as --map-by deals them out' --rank-by core true
check '--map-by ppr:1:socket' refused 'write -n N --map-by OBJECT' --map-by ppr:1:socket true

# ---- input and output ----------------------------------------------------------------------------

# read_by EXPECTED SPEC: which of four ranks have how many lines
read_by() {
	local from
	seq 3000 >"$dir/in"
	for from in file pipe; do
		status=0
		if [ $from = file ]; then
			timeout 60 "$mpiexec" -s "$2" -n 4 sh -c 'echo $PMI_RANK $(wc -l)' <"$dir/in" >"$dir/out" 2>"$dir/err" || status=$?
		else
			seq 3000 | timeout 60 "$mpiexec" -s "$2" -n 4 sh -c 'echo $PMI_RANK $(wc -l)' >"$dir/out" 2>"$dir/err" || status=$?
		fi
		need status_is 0
		need sorted_out_is "$1"
	done
}
one_stops_reading() {
	status=0
	seq 100000 | timeout 60 "$mpiexec" -s all -n 3 sh -c '[ $PMI_RANK -eq 1 ] || wc -l' >"$dir/out" 2>"$dir/err" || status=$?
	need status_is 0
	need out_is $'100000\n100000'
}
files() {
	run -n 3 -outfile-pattern "$dir/o.%r.%h%%" -errfile-pattern "$dir/all" sh -c 'echo out $PMI_RANK; echo err >&2'
	need status_is 0
	need [ "$(cat "$dir/o.2.$(uname -n)%")" = 'out 2' ]
	need [ "$(grep -c '^err$' "$dir/all")" -eq 3 ]
	run -n 2 --output-filename "$dir/both" sh -c 'echo out; echo err >&2'
	need [ "$(cat "$dir/both.1")" = $'out\nerr' ]
	run -n 2 -l -outfile-pattern "$dir/one" sh -c 'echo here'
	need [ "$(sort "$dir/one")" = $'[0] here\n[1] here' ]
	run -outfile-pattern "$dir/none/x" true
	need status_is 1
	need err_has "cannot write $dir/none/x, where output of rank 0 is to go"
	refused 'needs a file, with %r' -outfile-pattern 'x%q' true
}
merged() {
	run -n 2 "$@" sh -c 'echo out; echo err >&2'
	need status_is 0
	need err_is_empty
	need [ "$(wc -l <"$dir/out")" -eq 4 ]
}
check '-s none' read_by $'0 0\n1 0\n2 0\n3 0' none
check '-s 2' read_by $'0 0\n1 0\n2 3000\n3 0' 2
check '-s all' read_by $'0 3000\n1 3000\n2 3000\n3 3000' all
check '-s 0,2-3' read_by $'0 3000\n1 0\n2 3000\n3 3000' 0,2-3
for list in 0,,1 1--3 1-2-3 3-1 0+1; do
	check "-s $list" refused 'needs all, none or ranks' -s "$list" -n 4 true
done
check '-s with no rank of the job' refused '-s 2,5-7 names no rank of this job, which has 2' -s 2,5-7 -n 2 true
check 'a rank that reads no more does not keep the others from it' one_stops_reading
check '-outfile-pattern, -errfile-pattern, --output-filename' files
check '-merge-stderr-to-stdout' merged -merge-stderr-to-stdout
check '-merge-stderr-to-stdout and a file' refused 'exclude each other; leave one out' \
	-merge-stderr-to-stdout -errfile-pattern "$dir/errors" true
file_and_more() {
	run -n 2 --output "file=$dir/words,tag" echo here
	need status_is 0
	need [ "$(cat "$dir/words.1")" = '[1] here' ]
	local program
	program=$(realpath "$(type -P "$mpiexec")")
	status=0
	(cd "$dir" && "$program" --output merged.1 echo here) || status=$?
	need status_is 0
	need [ "$(cat "$dir/merged.1")" = here ]
}
check '--output with a file and more, or as srun has it' file_and_more
check '--output tag,merge' merged --output tag,merge

tap_done
