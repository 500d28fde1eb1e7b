#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# mpiexec from outside: exit statuses and messages, output, environment, signals, and that nothing is
# left of a job however it ends. Usage: test_mpiexec.sh MPIEXEC RT_JOB
# shellcheck disable=SC2016 # the ranks' shells expand, not ours
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
rt_job=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID MPIEXEC_TIMEOUT "${!PTL_@}" "${!SLURM_@}"
unset OMP_NUM_THREADS OMP_THREAD_LIMIT # which nproc follows

# run ARGS...: mpiexec under a limit; leaves status, $dir/out, $dir/err.
run() {
	status=0
	timeout -k 5 60 "$mpiexec" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}

# The same in the background; leaves job (its pid).
start() {
	: >"$dir/out" # nobody must see what the last one wrote
	# a background process of a script begins with the first two ignored, nohup ignores the third
	env --default-signal=INT,QUIT,HUP "$mpiexec" "$@" >"$dir/out" 2>"$dir/err" </dev/null &
	job=$!
}

# need COMMAND...: the case fails, and shows what was seen, unless this succeeds. A case runs in a
# shell of its own.
need() {
	"$@" && return
	echo "not so: $*"
	echo "status ${status-none yet}; stdout:"
	cat "$dir/out"
	echo "stderr:"
	cat "$dir/err"
	[ -z "${job-}" ] || kill -9 "$job" 2>/dev/null # a job that start has begun
	exit 1
}
status_is() { [ "$status" -eq "$1" ]; }
out_is() { [ "$(cat "$dir/out")" = "$1" ]; }
sorted_out_is() { [ "$(sort "$dir/out")" = "$1" ]; }
out_lines() { [ "$(grep -c -- "$2" "$dir/out")" -eq "$1" ]; }
err_has() { grep -Eq "$1" "$dir/err"; }
err_lines() { [ "$(grep -c "$2" "$dir/err")" -eq "$1" ]; }
err_is_empty() { [ ! -s "$dir/err" ]; }

# eventually COMMAND...: it succeeds within a minute.
eventually() {
	local deadline=$((SECONDS + 60))
	until "$@"; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.02
	done
}

gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }

# Waits for the job in the background; leaves status.
finish() {
	need eventually gone "$job" || {
		kill -9 "$job"
		need false
	}
	status=0
	wait "$job" || status=$?
}

# ---- exit status -------------------------------------------------------------------------------

all_good() {
	run -n 3 true
	need status_is 0
	need err_is_empty
}
first_failure() {
	run -n 3 sh -c '[ $PMI_RANK -ne 1 ] || exit 3; exec sleep 60'
	need status_is 3
	need err_has '^mpiexec: rank 1 \(pid [0-9]+ on [^,]+, sh\) exited with status 3; ending'
}
killed_rank() {
	run -n 3 sh -c '[ $PMI_RANK -ne 2 ] || kill -KILL $$; exec sleep 60'
	need status_is 137
	need err_has '^mpiexec: rank 2 \(pid [0-9]+ on [^,]+, sh\) was killed by signal 9 \(Killed\)'
}
one_message() {
	run -n 8 sh -c 'exit 5'
	need status_is 5
	need err_lines 1 'ending the job'
}
not_found() {
	run -n 2 no-such-program-here
	need status_is 127
	need err_has 'cannot start no-such-program-here: no such program in PATH; give its path'
}
no_such_path() {
	run "$dir/nothing"
	need status_is 127
	need err_has "cannot start $dir/nothing: No such file"
}
not_executable() {
	echo 'exit 0' >"$dir/script"
	chmod 644 "$dir/script"
	run "$dir/script"
	need status_is 126
	need err_has 'Permission denied; it must be an executable file \(chmod \+x\)'
}
no_interpreter() {
	printf '#!/no/such/interpreter\n' >"$dir/script"
	chmod 755 "$dir/script"
	run "$dir/script"
	need status_is 127
	need err_has 'interpreter .* is missing'
}
second_not_found() {
	run -n 2 sleep 60 : -n 1 no-such-program-here
	need status_is 127
}
bad_directory() {
	run -wdir "$dir/none" true
	need status_is 126
	need err_has "in the directory $dir/none: No such file or directory; correct -wdir"
}
time_out() {
	run --timeout 0.3 -n 2 sleep 60
	need status_is 124
	need err_has '0\.3 s are over; ending the job'
}
usage_error() {
	run "$@"
	need status_is 2
	need err_has 'see mpiexec --help'
}
check 'all ranks good: status 0, no word' all_good
check "the first failing rank's status, and a message with rank, pid, host and program" first_failure
check 'a killed rank: 128 + signal, and its message' killed_rank
check 'many failures, one message' one_message
check 'a program not in PATH: 127 and a remedy' not_found
check 'a path that is not there: 127' no_such_path
check 'a file not executable: 126 and a remedy' not_executable
check 'a missing interpreter is told from a missing program' no_interpreter
check 'the second program cannot be started: the first is ended' second_not_found
check 'a directory that is not there: 126' bad_directory
check '--timeout ends the job with 124' time_out
check 'no program' usage_error -n 2
check 'no program after the colon' usage_error true :
check 'a bad number of ranks' usage_error -n 0 true
check 'a number of ranks with something behind it' usage_error -n 2x true
check 'an unknown option' usage_error --frob true
check '-env without a value' usage_error -env NAME
check 'a bad --bind-to' usage_error --bind-to sockets:x true
check 'a bad --timeout' usage_error --timeout -1 true

# ---- programs, environment, files --------------------------------------------------------------

several_programs() {
	run -n 2 sh -c 'echo a$PMI_RANK/$PMI_SIZE' : sh -c 'echo b$PMI_RANK/$PMI_SIZE' : -n 1 sh -c 'echo c$PMI_RANK'
	need status_is 0
	need sorted_out_is $'a0/4\na1/4\nb2/4\nc3'
}
environment() {
	run -genv ALL yes -n 1 -env ONE 'a b=c' sh -c 'echo $PMI_RANK $ALL "$ONE"' : \
		-env ONE second sh -c 'echo $PMI_RANK $ALL $ONE'
	need status_is 0
	need sorted_out_is $'0 yes a b=c\n1 yes second'
}
job_id() {
	run -n 3 sh -c 'echo $PMI_JOBID'
	need status_is 0
	need [ "$(sort -u "$dir/out" | wc -l)" -eq 1 ]
	need [ -s "$dir/out" ]
	sort -u "$dir/out" >"$dir/first"
	run sh -c 'echo $PMI_JOBID'
	need [ "$(cat "$dir/first")" != "$(cat "$dir/out")" ]
}
inside_another() {
	PMI_FD=99 PMI_RANK=7 PMI_SIZE=9 PMI_PORT=host:1 run -n 1 sh -c 'echo $PMI_RANK $PMI_SIZE ${PMI_PORT-none}'
	need status_is 0
	need out_is '0 1 none'
}
path_from_env() {
	mkdir -p "$dir/bin"
	printf '#!/bin/sh\necho found\n' >"$dir/bin/only-here"
	chmod 755 "$dir/bin/only-here"
	run -env PATH "$dir/bin:$PATH" only-here
	need status_is 0
	need out_is found
}
directory() {
	mkdir -p "$dir/sub"
	run -wdir "$dir/sub" pwd : pwd
	need status_is 0
	need sorted_out_is "$(printf '%s\n' "$dir/sub" "$PWD" | sort)"
}
here() {
	run -n 2 -host "$1" -arch "$(uname -m)" true
	need status_is 0
	need err_is_empty
}
not_here() {
	run --launcher embedded -host "$1" true
	need status_is 2
	need err_has '192.0.2.1 is another machine, and the embedded launcher is for this one'
}
search() {
	mkdir -p "$dir/bin"
	printf '#!/bin/sh\necho found $PMI_RANK\n' >"$dir/bin/only-here"
	chmod 755 "$dir/bin/only-here"
	run -n 2 -path "$dir/none:$dir/bin" only-here
	need status_is 0
	need sorted_out_is $'found 0\nfound 1'
	printf 'echo "plain $*"\n' >"$dir/bin/plain"
	chmod 755 "$dir/bin/plain"
	run -path "$dir/bin" plain a b
	need status_is 0
	need out_is 'plain a b'
	run -path "$dir/bin" sh -c true
	need status_is 127
	need err_has "cannot start sh: no such program in -path $dir/bin"
}
# soft N SET RANKS
soft() {
	run -n "$1" -soft "$2" sh -c 'echo $PMI_SIZE'
	need status_is 0
	need out_lines "$3" "^$3\$"
}
configfile() {
	cat >"$dir/config" <<-'END'
		# two programs

		-n 2 sh -c 'echo "a $ONE $PMI_RANK"'
		  # the second
		-env ONE "b  c" sh \
		  -c 'echo "$ONE $PMI_RANK"'
	END
	run -genv ONE x -configfile "$dir/config"
	need status_is 0
	need sorted_out_is $'a x 0\na x 1\nb  c 2'
}
bad_configfile() {
	printf '%s\n' "$1" >"$dir/config"
	usage_error -configfile "$dir/config"
	need err_has "$2"
}
standard_input() {
	status=0
	printf 'one\ntwo\n' | timeout 60 "$mpiexec" -n 3 sh -c 'cat | sed "s/^/$PMI_RANK /"' \
		>"$dir/out" 2>"$dir/err" || status=$?
	need status_is 0
	need out_is $'0 one\n0 two'
}
clean_files() {
	local ours
	# one more than a child of ours has: the connection
	ours=$(sh -c 'ls /proc/self/fd | wc -l' </dev/null 2>"$dir/err")
	run -n 3 sh -c 'ls /proc/self/fd | wc -l'
	need status_is 0
	need [ "$(sort -u "$dir/out")" -eq $((ours + 1)) ]
}
clean_signals() {
	run grep -E '^Sig(Blk|Ign)' /proc/self/status
	# by way of the same program, which no longer ignores what a background job's shell did
	timeout 60 grep -E '^Sig(Blk|Ign)' /proc/self/status >"$dir/ours"
	need status_is 0
	need cmp -s "$dir/out" "$dir/ours"
}
clean_limits() {
	ulimit -Sn 64
	run -l -n 40 sh -c 'ulimit -n'
	need status_is 0
	need out_lines 40 '^\[[0-9]*\] 64$'
}
check 'several programs, ranks in order' several_programs
check '-genv for all, -env for one program' environment
check 'PMI_JOBID: one in a job, another in the next' job_id
check "an outer launcher's variables are replaced" inside_another
check 'PATH set by -env finds the program' path_from_env
check '-wdir for one program' directory
check '-host: localhost' here localhost
check '-host: by name' here "$(uname -n)"
check '-host: by address' here 127.0.0.1
check '-host: several names' here "localhost:4,127.0.0.1,$(uname -n)"
check '-host: another machine' not_here 192.0.2.1
check '-host: one of several is another machine' not_here localhost,192.0.2.1
check '-arch of another kind' usage_error -arch pdp11 true
check '-path is searched' search
check '-soft: the most' soft 5 1:5 5
check '-soft: the largest that fits' soft 5 2:8:2 4
check '-soft: downwards' soft 5 8:2:-3 5
check '-soft: several' soft 3 0,2,-7,4:9 2
check '-soft: none that fits' usage_error -n 2 -soft 3:9 true
check '-soft: no set' usage_error -n 2 -soft 1:x true
check '-configfile' configfile
check '-configfile that is not there' usage_error -configfile "$dir/none"
check '-configfile with something behind it' usage_error -configfile /dev/null true
check '-configfile without words' bad_configfile '# no' 'there is nothing in it'
check '-configfile with an open quotation' bad_configfile "true 'x" 'a quotation does not end'
check '-configfile that names a file' bad_configfile "-configfile $dir/config" 'names another'
check 'standard input goes to rank 0 alone' standard_input
check 'a rank has no files of mpiexec' clean_files
check 'a rank has the signal mask and dispositions of the caller' clean_signals
check 'mpiexec raises its limit of files, not that of the ranks' clean_limits

# ---- output ------------------------------------------------------------------------------------

labels() {
	run -l -n 2 sh -c 'echo out; echo err >&2; echo last'
	need status_is 0
	need sorted_out_is $'[0] last\n[0] out\n[1] last\n[1] out'
	need [ "$(sort "$dir/err")" = $'[0] err\n[1] err' ]
}
partial_lines() {
	run -prefix-rank -n 3 sh -c 'printf "a b"; printf " c\nend of %s" $PMI_RANK'
	need status_is 0
	need sorted_out_is $'[0] a b c\n[0] end of 0\n[1] a b c\n[1] end of 1\n[2] a b c\n[2] end of 2'
}
long_lines() {
	run -l -n 2 sh -c 'head -c 100000 /dev/zero | tr "\0" x; echo'
	# broken after 64 KiB
	need status_is 0
	need [ "$(wc -l <"$dir/out")" -eq 4 ]
	need [ "$(tr -dc x <"$dir/out" | wc -c)" -eq 200000 ]
}
# Standard output and error are one pipe.
one_pipe() {
	timeout 60 "$mpiexec" -l -n 4 sh -c 'seq 20000; seq 20000 >&2; exit 3' 2>&1 </dev/null |
		(sleep 0.2 && cat) >"$dir/out"
	need [ "$(grep -Evc '^\[[0-3]\] [0-9]+$|^mpiexec: rank [0-3] .*; ending the job$' "$dir/out")" -eq 0 ]
	need out_lines 1 ^mpiexec:
}
much_output() {
	# more than a pipe, a slow reader: nothing lost, nothing mixed
	status=0
	timeout 60 "$mpiexec" -l -n 4 sh -c 'seq -f "%06.0f of $PMI_RANK" 20000' 2>"$dir/err" |
		(sleep 0.2 && cat) | sort >"$dir/out" || status=$?
	for rank in 0 1 2 3; do
		seq -f "[$rank] %06.0f of $rank" 20000
	done | sort >"$dir/expected"
	cmp "$dir/out" "$dir/expected"
}
reader_gone() {
	# the ranks would write for ever; as without mpiexec, they learn that nobody reads
	timeout 60 "$mpiexec" -l -n 2 yes 2>/dev/null | head -n 1 >"$dir/out"
	[ "${PIPESTATUS[0]}" -ne 124 ] && grep -q '^\[[01]\] y$' "$dir/out"
}
to_a_file() {
	run -n 2 sh -c 'readlink /proc/self/fd/1 /proc/self/fd/2; echo said; echo told >&2'
	need status_is 0
	need out_lines 4 '^pipe:'
	need out_lines 2 '^said$'
	need err_lines 2 '^told$'
}
to_a_pipe() {
	# of one rank: ours, as without mpiexec; of several each its own
	"$mpiexec" sh -c 'readlink /proc/self/fd/1' 2>"$dir/err" </dev/null |
		(readlink /proc/self/fd/0 && cat) >"$dir/out"
	need [ "$(sort -u "$dir/out" | wc -l)" -eq 1 ]
	"$mpiexec" -n 2 sh -c 'readlink /proc/self/fd/1' 2>"$dir/err" </dev/null |
		(readlink /proc/self/fd/0 && cat) >"$dir/out"
	need [ "$(sort -u "$dir/out" | wc -l)" -eq 3 ]
	need out_lines 3 '^pipe:'
}
# Ranks that write 16 KiB at once, and stop in the middle of lines: no line has another in it.
whole_lines() {
	"$mpiexec" -n 64 sh -c 'seq -f "$PMI_RANK %.0f of a line that is not short" 2000' 2>"$dir/err" </dev/null |
		grep -Evc '^[0-9]+ [0-9]+ of a line that is not short$' >"$dir/out"
	need out_is 0
	"$mpiexec" -n 64 sh -c 'seq -f "$PMI_RANK %.0f" 2000' 2>"$dir/err" </dev/null | sort | uniq -d >"$dir/out"
	need out_is ''
	"$mpiexec" -n 64 sh -c 'seq -f "$PMI_RANK %.0f" 2000' 2>"$dir/err" </dev/null | wc -l >"$dir/out"
	need out_is 128000
	need err_is_empty
}
# Ranks that write each line by itself, all at once: each comes with its label, whole and in its rank's order.
labelled_lines() {
	"$mpiexec" -l -n 64 sh -c 'exec stdbuf -oL seq -f "$PMI_RANK %.0f of a line that is not short" 1000' 2>"$dir/err" </dev/null |
		awk '{
			rank = substr($1, 2) + 0
			if ($0 != "[" rank "] " rank " " ++seen[rank] " of a line that is not short")
				print "after " seen[rank] " lines of rank " rank ": " $0
		}
		END {
			for (rank = 0; rank < 64; rank++)
				if (seen[rank] != 1000)
					print "rank " rank ": " seen[rank] + 0 " lines"
		}' >"$dir/out"
	need out_is ''
	need err_is_empty
}
# A line without its end is not kept back for ever.
unfinished_line() {
	start -n 2 sh -c 'printf "ready? "; exec sleep 60'
	need eventually grep -q 'ready? ready? ' "$dir/out"
	kill "$job"
	finish
}
no_room_for_pipes() {
	ulimit -n 130
	run -n 20 sh -c 'readlink /proc/self/fd/1'
	need out_lines 20 '^pipe:'
	run -n 30 sh -c 'readlink /proc/self/fd/1'
	need status_is 0
	need out_lines 30 "^$dir/out\$"
}
# Standard output and error are one file: the order of each rank's stays.
in_order() {
	status=0
	timeout 60 "$mpiexec" -n 3 sh -c 'for i in 1 2 3 4 5 6 7 8; do echo $PMI_RANK a; echo $PMI_RANK b >&2; done' \
		>"$dir/out" 2>&1 </dev/null || status=$?
	need status_is 0
	for rank in 0 1 2; do
		need [ "$(grep "^$rank" "$dir/out" | tr -dc ab)" = abababababababab ]
	done
}
# Usage: much_to_a_file 3|4: the file opened for writing, or to append to.
much_to_a_file() {
	status=0
	: >"$dir/out"
	exec 3<>"$dir/out"
	exec 4>>"$dir/out"
	timeout 60 "$mpiexec" -n 3 sh -c 'seq -f "$PMI_RANK %.0f" 200000' 2>"$dir/err" </dev/null \
		1>&"$1" || status=$?
	need status_is 0
	need [ "$(grep -Ec '^[012] [0-9]+$' "$dir/out")" -eq 600000 ]
	need [ "$(sort -u "$dir/out" | wc -l)" -eq 600000 ]
}
# Two jobs have one open file; neither writes over what the other has written.
shared_file() {
	local second
	exec 3>"$dir/out"
	timeout 60 "$mpiexec" -n 2 sh -c 'seq -f "$PMI_RANK %.0f" 100000' 2>"$dir/err" </dev/null >&3 &
	second=$!
	status=0
	timeout 60 "$mpiexec" -n 2 sh -c 'seq -f "$PMI_RANK %.0f" 100000' 2>"$dir/err" </dev/null >&3 || status=$?
	need wait "$second"
	need status_is 0
	need [ "$(wc -l <"$dir/out")" -eq 400000 ]
}
file_is_full() {
	# the ranks go on, and the exit status tells
	status=0
	(ulimit -f 2 && timeout 60 "$mpiexec" -n 2 sh -c 'head -c 100000 /dev/zero && head -c 100000 /dev/zero && : >"$0.$PMI_RANK"' \
		"$dir/done" >"$dir/out" 2>"$dir/err" </dev/null) || status=$?
	need status_is 1
	need err_lines 1 'cannot write standard output: File too large; output is lost'
	need err_lines 1 .
	need [ -e "$dir/done.0" ]
	need [ -e "$dir/done.1" ]
	need [ "$(wc -c <"$dir/out")" -eq 2048 ]
}
# A reader that comes so many seconds later, when limits on the end of a job are over. Usage: late_reader SECONDS STATUS
# [OPTION...]
late_reader() {
	local late=$1 ends=$2
	shift 2
	(
		timeout 60 "$mpiexec" "$@" -l sh -c "seq 20000; exit $ends" 2>"$dir/err" </dev/null
		echo "status $?" >"$dir/status"
	) | (sleep "$late" && cat) >"$dir/out"
	need [ "$(cat "$dir/status")" = "status $ends" ]
	need out_lines 20000 '^\[0\] [0-9]*$'
	need [ "$(grep -c 's are over' "$dir/err")" -eq 0 ]
}
gives_up_reader() {
	mkfifo "$dir/fifo"
	exec 3<>"$dir/fifo" # which nobody reads
	"$mpiexec" -l -n 2 sh -c 'seq 10000; : >$0.$PMI_RANK' "$dir/wrote" >"$dir/fifo" 2>"$dir/err" </dev/null &
	job=$!
	need eventually [ -e "$dir/wrote.0" ]
	need eventually [ -e "$dir/wrote.1" ]
	need eventually eval '! pgrep -P "$job" -x sh'
	kill "$job"
	finish
	need status_is 143
}
last_words() {
	# what a rank has written comes before the message about it
	status=0
	timeout 60 "$mpiexec" -l sh -c 'echo last words >&2; exit 1' 2>"$dir/err" >"$dir/out" || status=$?
	need status_is 1
	need [ "$(head -n 1 "$dir/err")" = '[0] last words' ]
}
check '-l labels whole lines of both streams' labels
check '-l keeps a line together and ends the last one' partial_lines
check '-l breaks very long lines' long_lines
check '-l loses and mixes nothing when the reader is slow' much_output
check '-l loses and mixes nothing of two streams to one pipe' one_pipe
check '-l: the reader goes, so do the ranks' reader_gone
check 'the output of a job that failed waits for its reader' late_reader 14 3
check 'also after the timeout' late_reader 7 0 --timeout 6
check 'SIGTERM ends the wait for a reader, and is the status' gives_up_reader
check 'what goes to a file goes through a pipe' to_a_file
check 'or directly, where the limit of files allows no more' no_room_for_pipes
check 'what one rank writes to a pipe goes there directly' to_a_pipe
check 'the lines of 64 ranks stay whole' whole_lines
check '-l: each line of 64 ranks that write line by line is whole and has its label' labelled_lines
check 'a question comes without the end of its line' unfinished_line
check 'the order of what goes to one file stays' in_order
check 'a file loses nothing' much_to_a_file 3
check 'a file that is appended to loses nothing' much_to_a_file 4
check 'two jobs lose nothing in one open file' shared_file
check 'a file that takes no more is said, and the ranks go on' file_is_full
check "a rank's last words come before the message" last_words

# ---- binding -----------------------------------------------------------------------------------

# Prints the CPUs a process may use, as the kernel writes them: 0-3,8
mask=(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
# Lists of that form, one number a line.
expand() { tr , '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done; }

bound_to_core() {
	local ranks cores
	ranks=$(($(nproc) + 1))
	run -l --bind-to core -n $ranks "${mask[@]}"
	need status_is 0
	sort -V "$dir/out" | sed 's/^\[[0-9]*\] //' >"$dir/lists" # in rank order
	cores=$(sort -u "$dir/lists" | wc -l)
	# all CPUs are in use, each in one core only, and ranks past the last core wrap round
	need [ "$(sort -u "$dir/lists" | expand | sort -n)" = "$("${mask[@]}" | expand)" ]
	head -n $((ranks - cores)) "$dir/lists" >"$dir/first"
	tail -n $((ranks - cores)) "$dir/lists" >"$dir/wrapped"
	need cmp "$dir/first" "$dir/wrapped"
}
# All CPUs are in use, none by two ranks, and no rank has more than a core more than another.
shares() {
	local ranks cores
	run --bind-to core -n "$(nproc)" "${mask[@]}"
	need status_is 0
	cores=$(sort -u "$dir/out" | wc -l)
	for ranks in 1 2 3 $((cores - 1)) "$cores"; do
		[ "$ranks" -ge 1 ] || continue
		[ "$ranks" -le "$cores" ] || continue
		run -l --bind-to share -n "$ranks" "${mask[@]}"
		need status_is 0
		sed 's/^\[[0-9]*\] //' "$dir/out" >"$dir/lists"
		need [ "$(expand <"$dir/lists" | sort -n)" = "$("${mask[@]}" | expand)" ]
		while read -r list; do
			echo "$list" | expand | wc -l
		done <"$dir/lists" | sort -n >"$dir/sizes"
		need [ $(($(tail -n 1 "$dir/sizes") - $(head -n 1 "$dir/sizes"))) -le $(($(nproc) / cores)) ]
	done
}
# Usage: within_mask RANKS [OPTION...]; mpiexec has one CPU.
within_mask() {
	local cpu ranks=$1
	shift
	cpu=$("${mask[@]}" | expand | tail -n 1)
	status=0
	timeout 60 taskset -c "$cpu" "$mpiexec" "$@" -n "$ranks" "${mask[@]}" \
		>"$dir/out" 2>"$dir/err" || status=$?
	need status_is 0
	need [ "$(uniq -c "$dir/out" | awk '{ print $1, $2 }')" = "$ranks $cpu" ]
}
not_bound() {
	run "$@" "${mask[@]}"
	need status_is 0
	need [ "$(sort -u "$dir/out")" = "$("${mask[@]}")" ]
}
check '--bind-to core gives each rank a core and wraps round' bound_to_core
check '--bind-to core stays within the mask mpiexec has' within_mask 2 --bind-to core
check '--bind-to share deals the cores out' shares
check '--bind-to share gives a core to several where they are short' within_mask 3 --bind-to share
check 'the one processor that mpiexec has is for all ranks' within_mask 3
check '--bind-to none leaves the mask alone' not_bound --bind-to none -n 2
check 'more ranks than cores are not bound by default' not_bound -n $(($(nproc) + 1))

# ---- the job as PMI sees it --------------------------------------------------------------------

fence_of() {
	run -n "$1" "$rt_job" fence "$2"
	need status_is 0
	need out_lines "$1" 'fences done$'
}
# The most processes that there may be here.
process_limit() {
	local group file
	group=$(sed -n 's/^0:://p; s/^[0-9]*:pids://p' /proc/self/cgroup | tail -n 1)
	while :; do
		for file in "/sys/fs/cgroup$group/pids.max" "/sys/fs/cgroup/pids$group/pids.max"; do
			[ ! -r "$file" ] || cat "$file"
		done
		[ "${group%/}" ] || break
		group=${group%/*}
	done >"$dir/limits"
	[ "$(id -u)" -eq 0 ] || ulimit -u >>"$dir/limits"
	grep -x '[0-9]*' "$dir/limits" | { cat && echo 1000000; } | sort -n | head -n 1
}
crowd() {
	run -n 512 "$rt_job" late 512 0
	need status_is 0
	need out_lines 512 'at its end$'
}
rt_case() {
	run -n 4 "$rt_job" "$1"
	need status_is 0
	need out_lines 4 "$1 done\$"
}
crash() {
	run -n 4 "$rt_job" crash 1 6
	need status_is 134
	need err_has 'rank 1 \(pid .*rt_job\) was killed by signal 6 \(Aborted\)'
	need err_lines 1 mpiexec:
}
quit() {
	run -n 4 "$rt_job" quit 2 7
	need status_is 7
	need err_has 'rank 2 \(pid .*\) exited with status 7; ending the job'
}
give_up() {
	run -n 4 "$rt_job" give_up 2 7
	need status_is 7
	need err_has 'rank 2 \(pid .*\) exited with status 7; ending the job'
}
leave() {
	run -n 4 "$rt_job" leave 3
	status_is 1 && err_has 'rank 3 \(pid .*\) has left the job, but [123] of 4 ranks wait for it in a fence'
}
never_joined() {
	run -n 3 "$rt_job" fence 1 : true
	need status_is 1
	need err_has 'rank 3 .* has left the job, but [123] of 4 ranks wait'
}
late() {
	run -n 4 "$rt_job" late 1 5
	need status_is 5
	need out_lines 3 'at its end$'
	need err_is_empty
}
aborted() {
	run -n 4 "$rt_job" abort 2 42
	need status_is 42
	need err_has 'rank 2 \(pid .*\) aborted the job with code 42'
	need err_has 'this is the reason'
}
one_after_another() {
	# the second and the third are jobs of all ranks, however far apart the ranks are
	run -n 4 sh -c '"$0" fence 2 && { [ $PMI_RANK -ne 1 ] || sleep 0.3; } && "$0" fence 3 && "$0" values && "$0" whoami' "$rt_job"
	need status_is 0
	need err_is_empty
	need out_lines 8 'of 4: fences done$'
	need out_lines 4 'of 4: values done$'
	need out_lines 4 '^rank [0-3] of 4 kind 2 job postern_.*_3$'
	need [ "$(sed -n 's/.* job //p' "$dir/out" | sort -u | wc -l)" -eq 1 ]
}
crash_in_second() {
	run -n 3 sh -c '"$0" fence 1; exec "$0" crash 1 6' "$rt_job"
	need status_is 134
	need err_has 'rank 1 \(pid .*sh\) was killed by signal 6'
}
abort_in_second() {
	run -n 3 sh -c '"$0" fence 1; exec "$0" abort 1 7' "$rt_job"
	need status_is 7
	need err_has 'rank 1 \(pid .*\) aborted the job with code 7'
}
second_of_some() {
	run -n 3 sh -c '"$0" fence 1; [ $PMI_RANK -eq 2 ] || exec "$0" fence 1' "$rt_job"
	need status_is 1
	need err_has 'rank 2 \(pid .*\) has left the job, but [12] of 3 ranks wait for it in a fence'
}
first_skipped() {
	run -n 3 sh -c '[ $PMI_RANK -eq 2 ] || "$0" fence 1; exec "$0" whoami' "$rt_job"
	need status_is 1
	need err_has 'rank 2 \(pid .*\) has left the job, but [12] of 3 ranks wait for it in a fence'
}
after_a_crash() {
	run sh -c '"$0" crash 0 9; "$0" whoami; exit 0' "$rt_job"
	need err_has 'in_the_job_or_has_ended_without_leaving_it.*has crashed has not left it'
}
at_once() {
	run bash -c '"$0" wait & read -r line < <(tail -f --pid=$$ "$1"); "$0" fence 1; status=$?; kill %1; exit $status' \
		"$rt_job" "$dir/out"
	need status_is 98
	need err_has 'refused this process: another_process_of_this_rank_is_in_the_job.*when the other one has ended'
}
# Usage: nested HOW, of which %s is the program.
nested() {
	run -n 2 "$rt_job" nested "$1"
	need status_is 0
	need err_is_empty
	need out_lines 2 'of 2: nested done$'
	need out_lines 1 '^rank 0 of 1 kind 0 job alone-'
}
# A process that a rank leaves running when the shell that it has started ends. Usage: orphan
# [COMMAND...], which runs the rank.
orphan() {
	rm -f "$dir/over"
	run -n 2 "$@" "$rt_job" nested "sh -c 'shell=\$\$; (while kill -0 \$shell 2>/dev/null; do sleep 0.02; done
		%s whoami; : >$dir/over) &'; until [ -e $dir/over ]; do sleep 0.02; done"
	need status_is 0
	need err_is_empty
	need out_lines 2 'of 2: nested done$'
	need out_lines 1 '^rank 0 of 1 kind 0 job alone-'
}
job_within() {
	run -n 2 "$rt_job" nested "\"$mpiexec\" -n 3 %s fence 2"
	need status_is 0
	need err_is_empty
	need out_lines 3 'of 3: fences done$'
}
fence_refused() {
	run bash -c 'ask() { eval "printf \"%s\n\" \"$1\" >&$PMI_FD; read -r answer <&$PMI_FD"; echo "$answer"; }
		join="cmd=init pmi_version=1 pmi_subversion=1"
		ask cmd=barrier_in; ask "$join"; ask cmd=finalize; ask cmd=barrier_in; ask "$join"; ask cmd=barrier_in; ask cmd=finalize'
	need status_is 0
	need out_lines 2 '^cmd=barrier_out rc=-1 msg=not_in_the_job$'
	need out_lines 1 '^cmd=barrier_out$'
}
left_in_fence() {
	rm -f "$dir/left"
	# the second program of a rank is not in the fence that the first one has left undone
	run -n 2 bash -c 'ask() { eval "printf \"%s\n\" \"$1\" >&$PMI_FD"; }
		[ $PMI_RANK -eq 1 ] || { ask "cmd=init pmi_version=1 pmi_subversion=1"; ask cmd=barrier_in; ask cmd=finalize
			for i in 1 2; do eval "read -r answer <&$PMI_FD"; done; : >"$1"; }
		until [ -e "$1" ]; do sleep 0.02; done
		[ $PMI_RANK -eq 0 ] || "$0" whoami; exec "$0" fence 1' "$rt_job" "$dir/left"
	need status_is 0
	need out_lines 2 'fences done$'
}
garbage() {
	run -n 2 bash -c 'if [ $PMI_RANK -eq 0 ]; then eval "printf \"hello\\n\" >&$PMI_FD"; exec sleep 60; fi; exec "$0" fence 1' "$rt_job"
	need status_is 1
	need err_has 'rank 0 sent a line that is not PMI-1'
	need err_has 'rank 0 .* has left the job'
}
unknown_request() {
	run bash -c 'eval "echo cmd=frobnicate x=1 >&$PMI_FD; read -r answer <&$PMI_FD"; echo "$answer"'
	need status_is 0
	need out_is 'cmd=frobnicate_result rc=-1 msg=not_supported'
}
spawn_cut_short() {
	run bash -c 'eval "printf \"mcmd=spawn\nnprocs=1\n\" >&$PMI_FD"; exec "$0" fence 1' "$rt_job"
	need status_is 0
	need out_lines 1 'fences done$'
}
spawn_refused() {
	run bash -c 'eval "printf \"mcmd=spawn\nnprocs=1\nexecname=x\nendcmd\n\" >&$PMI_FD; read -r answer <&$PMI_FD"; echo "$answer"'
	need status_is 0
	need out_is 'cmd=spawn_result rc=-1 msg=the_processes_could_not_be_started'
}
launcher_dies() {
	start -n 2 "$rt_job" lose
	need eventually out_lines 1 waiting
	pids=$(pgrep -P "$job" -x rt_job)
	kill -9 "$job"
	wait "$job" || true
	for pid in $pids; do
		need eventually gone "$pid"
	done
}
check '64 ranks meet in a fence' fence_of 64 2
check '256 ranks meet in a fence' fence_of 256 1
if [ "$(process_limit)" -ge 2000 ]; then
	check '512 ranks meet and leave' crowd
else
	tap_skip '512 ranks meet and leave' "there may be $(process_limit) processes, and 2000 should be possible"
fi
check 'a job of one rank' fence_of 1 3
check 'values of all lengths and bytes' rt_case values
check 'several threads of a rank ask at once' rt_case threads
check 'a forked child keeps off the connection' rt_case fork
check 'a crash ends the job, with one message about it' crash
check 'an exit before leaving the job ends it' quit
check 'a fence that one rank cannot enter ends the job' leave
check 'so does a rank that never joins' never_joined
check 'exit(3) with a status other than 0, by a rank that has not left the job, ends it' give_up
check 'an exit status after leaving the job ends nothing' late
check 'an abort ends the job with its code, from any thread' aborted
check 'programs of a rank one after the other are jobs of all ranks' one_after_another
check 'a crash in the second' crash_in_second
check 'an abort in the second' abort_in_second
check 'a second that one rank does not run ends the job' second_of_some
check 'so does a first that one rank does not run' first_skipped
check 'two programs of a rank at once: refused with the reason' at_once
check 'so is one after a crash' after_a_crash
check 'what a rank starts runs alone' nested '%s whoami'
check 'by way of a shell, too' nested 'true; sh -c "%s whoami; true"; true'
check 'and where it has another file in the place of the connection' nested \
	'exec bash -c "exec {fd}</dev/null; for i in 3 4 5 6 7 8 9; do [ -e /proc/self/fd/\$i ] || eval \"exec \$i</dev/null\"; done; %s whoami; true"'
check 'and where it has another socket there' nested \
	'exec python3 -c "import os, socket, sys; fd = int(os.environ[\"PMI_FD\"]); pair = socket.socketpair(); os.dup2(pair[0].fileno(), fd); os.set_inheritable(fd, True); os.execl(sys.argv[1], sys.argv[1], \"whoami\")" %s'
check 'and when what started it has ended' orphan
check 'also in a script' orphan sh -c '"$0" "$@"; exit'
check 'a rank can start a job of its own' job_within
check 'a fence is for those in the job' fence_refused
check 'a fence that a program has left undone is not that of the next' left_in_fence
check 'a rank that does not speak PMI-1 loses its connection' garbage
check 'an unknown request is answered' unknown_request
check 'spawn is answered' spawn_refused
check 'a spawn that its program has not finished ends with the next one' spawn_cut_short
check 'the ranks of a killed mpiexec do not stay in their fence' launcher_dies

# ---- signals -----------------------------------------------------------------------------------

forwarded() {
	start -n 3 "$rt_job" signals
	need eventually out_lines 3 waiting
	kill -s "$1" "$job"
	need eventually out_lines 3 "got signal $(kill -l "$1")\$"
	kill "$job"
	finish
	need out_lines 3 'got signal 15$'
}
terminated() {
	start -n 3 bash -c 'echo ready; exec sleep 60'
	need eventually out_lines 3 ready
	kill -s "$1" "$job"
	finish
	need status_is "$2"
	need err_is_empty
}
# The first rank sends the signal while others are started.
while_starting() {
	run --bind-to none --report-bindings -n 400 sh -c '[ $PMI_RANK -ne 0 ] || kill -s "$0" $PPID; exec sleep 600' "$1"
	need status_is "$2"
	need [ "$(grep -c 'is not bound' "$dir/err")" -lt 400 ]
}
graceful() {
	start -n 2 bash -c 'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
	need eventually out_lines 2 ready
	kill "$job"
	finish
	need status_is 0
	need out_lines 2 saved
}
second_kills() {
	start -n 2 bash -c 'trap "echo ignored" TERM; echo ready; while :; do sleep 0.05; done'
	need eventually out_lines 2 ready
	kill "$job"
	need eventually out_lines 2 ignored
	sleep 0.3 # sooner it would count as the same
	kill "$job"
	finish
	need status_is 143
	need err_has '^mpiexec: killing the job$'
}
# As timeout(1) sends it.
sent_twice() {
	start -n 2 bash -c 'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
	need eventually out_lines 2 ready
	for _ in 1 2 3 4 5 6 7 8; do
		kill "$job"
	done
	finish
	need status_is 0
	need out_lines 2 saved
	need err_lines 0 mpiexec:
}
deaf() {
	start -n 2 bash -c 'trap "" TERM; echo ready; exec sleep 600'
	need eventually out_lines 2 ready
	kill "$job"
	finish
	need status_is 143
	need err_has 'ranks are still there 10 s after SIGTERM; killing the job'
	need err_lines 1 mpiexec:
}
grace() {
	# one rank fails, another one does not care for SIGTERM
	start -n 2 bash -c 'trap "" TERM; [ $PMI_RANK -ne 0 ] || exit 9; for i in {1..400}; do sleep 0.05; done'
	local before=$SECONDS
	finish
	need status_is 9
	need [ $((SECONDS - before)) -le 8 ]
}
all_stopped() {
	local pid
	for pid in $(pgrep -P "$job" -x "$1"); do
		grep -q '^State:[[:space:]]*T' "/proc/$pid/status" || return 1
	done
	grep -q '^State:[[:space:]]*T' "/proc/$job/status"
}
none_stopped() { ! all_stopped sleep; }
stopped() {
	start -n 2 bash -c 'echo ready; exec sleep 61'
	need eventually out_lines 2 ready
	kill -TSTP "$job"
	need eventually all_stopped sleep
	kill -CONT "$job"
	need eventually none_stopped
	kill -TSTP "$job"
	need eventually all_stopped sleep
	# a job that is stopped can be ended, too
	kill -CONT "$job"
	kill "$job"
	finish
	need status_is 143
}
check 'SIGUSR1 is forwarded' forwarded USR1
check 'SIGUSR2 is forwarded' forwarded USR2
check 'SIGHUP is forwarded' forwarded HUP
check 'SIGINT ends the job' terminated INT 130
check 'SIGTERM ends the job' terminated TERM 143
check 'SIGTERM ends the start of ranks' while_starting TERM 143
check 'ranks may handle SIGTERM and end well' graceful
check 'a second SIGTERM kills' second_kills
check 'one that is sent twice at once is one' sent_twice
check 'ranks deaf to it are killed ten seconds later' deaf
check 'a rank deaf to SIGTERM is killed after the grace' grace
check 'SIGTSTP stops the job, SIGCONT continues it' stopped

# ---- nothing is left ---------------------------------------------------------------------------

# Each rank and something it has started write their pids.
family='sleep 62 & echo pid $!; echo pid $$; '
pids_gone() {
	local pid
	need out_lines "$1" '^pid'
	while read -r pid; do
		need eventually gone "$pid"
	done < <(sed -n 's/^pid //p' "$dir/out")
}
left_by_good_end() {
	run -n 2 sh -c "$family exit 0"
	need status_is 0
	need pids_gone 4
}
left_by_crash() {
	start -n 2 sh -c "$family wait"
	need eventually out_lines 4 pid
	kill -SEGV "$(pgrep -P "$job" -x sh | head -n 1)"
	finish
	need status_is 139
	pids_gone 4
}
left_by_kill() {
	start -n 4 sh -c "$family wait"
	need eventually out_lines 8 pid
	kill -9 "$job"
	wait "$job" || true
	pids_gone 8
}
left_by_early_kill() {
	# killed at any moment of its start
	for delay in 0 0.002 0.004 0.006 0.01 0.015 0.02 0.03; do
		start -n 16 sh -c "$family wait"
		sleep $delay
		kill -9 "$job"
		wait "$job" || true
		pids_gone "$(grep -c ^pid "$dir/out")" || return
	done
}
deaf_children() {
	run -n 1 sh -c '(trap "" TERM INT HUP; echo pid $(exec sh -c "echo \$PPID"); exec sleep 63) & sleep 0.1; exit 0'
	need status_is 0
	need pids_gone 1
}
no_guard_left() {
	start -n 1 sh -c "$family wait"
	need eventually out_lines 2 pid
	guard=$(pgrep -P "$job" -x mpiexec)
	kill -9 "$job"
	wait "$job" || true
	need eventually gone "$guard"
}
check 'what ranks have started goes with a good end' left_by_good_end
check 'and with a crash' left_by_crash
check 'and when mpiexec is killed' left_by_kill
check 'and when mpiexec is killed while it starts' left_by_early_kill
check 'even what is deaf to SIGTERM' deaf_children
check 'the guard goes, too' no_guard_left

tap_done
