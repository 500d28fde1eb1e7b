#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# What the tools of MX print, as scripts read it: boards, peers, open endpoints, counters, and the
# rows of the measuring tools. Usage: tools.sh DIR_OF_THE_TOOLS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
tools=$1
dir=$(mktemp -d)
server=

clean_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean_up EXIT
# the names of Open-MX, as they are installed
for name in info endpoint_info counters hostname; do
	ln -s "$(readlink -f "$tools/mx_$name")" "$dir/omx_$name"
done
host=$(hostname)

# shows COMMAND... -- LINE...: it succeeds, and prints these lines in this order (extended regular expressions)
shows() {
	local command=() output line want
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	output=$("${command[@]}") || return
	printf '%s\n' "$output"
	while IFS= read -r line; do
		want=${1-}
		if [ $# -gt 0 ] && [[ $line =~ $want ]]; then shift; fi
	done <<<"$output"
	[ $# -eq 0 ] || { echo "no line like: $1"; return 1; }
}
# says STATUS TEXT COMMAND...: it ends with the status and says that on stderr
says() {
	local want=$1 text=$2 status=0 output
	shift 2
	output=$("$@" 2>&1 >/dev/null) || status=$?
	echo "status $status: $output"
	[ "$status" -eq "$want" ] && grep -q -- "$text" <<<"$output"
}
prints_no() {
	local output
	output=$("${@:2}") || return
	printf '%s\n' "$output"
	! grep -qE -- "$1" <<<"$output"
}

mac='[0-9a-f]{2}(:[0-9a-f]{2}){5}'

# ---- boards --------------------------------------------------------------------------------------

found="^Found [1-9][0-9]* boards \([0-9]+ max\) supporting [0-9]+ endpoints each:\$"
board="^ [^ ]+:0 \(board #0 name [^ ]+ addr $mac\)\$"
check 'mx_info shows the boards, the state of the peer table and the peers' \
	shows "$tools/mx_info" -- "$found" "$board" "^Peer table is ready, mapper is $mac\$" '^=+$' "^ *0\) $mac [^ ]+:0\$"
check 'omx_info does, too' shows "$dir/omx_info" -- "$found" "$board" "^ *0\) $mac [^ ]+:0\$"
check 'mx_info shows a peer that is named' shows "$tools/mx_info" localhost -- '^=+$' "^ *0\) $mac" "^ *[0-9]+\) $mac [^ ]+:0\$"
check 'mx_info says that a name is not known' says 1 'no-such-host.invalid' "$tools/mx_info" no-such-host.invalid
check 'mx_info -q shows no peers' prints_no '^Peer table|^===' "$tools/mx_info" -q
check 'mx_info -v shows more' shows "$tools/mx_info" -b 0 -v -- "$board" 'product code: ' 'NUMA node: -?[0-9]+' 'longest buffered message: [0-9]+'
check 'mx_info says that there is no such board' says 1 'no board 4711' "$tools/mx_info" -b 4711
check 'mx_info refuses what is no number' says 2 'not the number' "$tools/mx_info" -b x

check 'mx_hostname shows the name of the board' shows "$tools/mx_hostname" -- "^$host:0\$"
check 'omx_hostname does, too' shows "$dir/omx_hostname" -b 0 -- "^$host:0\$"
check 'mx_hostname refuses a new name' says 1 'cannot be set' "$tools/mx_hostname" -n other
check 'mx_hostname says that there is no such board' says 1 'no board 99' "$tools/mx_hostname" -b 99

# ---- an endpoint that is open --------------------------------------------------------------------

# start COMMAND...: a receiver that says where it is; sets server and eid
start() {
	"$@" >"$dir/log" 2>&1 &
	server=$!
	local deadline=$((SECONDS + 20))
	until grep -q 'endpoint=' "$dir/log"; do
		kill -0 "$server" 2>/dev/null || return
		[ "$SECONDS" -lt "$deadline" ] || return
		sleep 0.02
	done
	eid=$(sed -n 's/.*endpoint=//p' "$dir/log")
}
stop() {
	kill "$server"
	wait "$server" 2>/dev/null || true
	server=
}
start "$tools/mx_pingpong" -e any -s || { cat "$dir/log" >&2; exit 1; }

check 'the receiver says where it is' grep -qE "^Starting pingpong receiver on $host:0, endpoint=$eid\$" "$dir/log"
check 'mx_endpoint_info shows number, process and command' shows "$tools/mx_endpoint_info" -- \
	'^[0-9]+ boards installed, which support up to [0-9]+ endpoints each' "^$host:0 \(board #0 addr $mac\)\$" \
	'^Endpoint[[:space:]]+PID[[:space:]]+Command[[:space:]]+Info$' \
	"^${eid}[[:space:]]+${server}[[:space:]]+mx_pingpong\$" '^There are currently [1-9][0-9]* regular endpoints open$'
check 'omx_endpoint_info does in its own way' shows "$dir/omx_endpoint_info" -b 0 -- \
	"^  $eid	open by pid $server \(mx_pingpong\)\$" '^[1-9][0-9]* endpoints open$'
check 'those that are not open are shown with -v' shows "$dir/omx_endpoint_info" -v -- '^  [0-9]+	not open$'

# ---- measuring -----------------------------------------------------------------------------------

row='^ *%s +[0-9]+\.[0-9]{3} +[0-9]+\.[0-9]{3}$'
# shellcheck disable=SC2059 # the length goes in
rows() {
	local length
	for length; do
		printf "$row\n" "$length"
	done
}
mapfile -t few < <(rows 0 1 2 4 8 16 32 64)
check 'mx_pingpong prints a row for each length' \
	shows "$tools/mx_pingpong" -d localhost -r "$eid" -N 20 -M 2 -E 65 -V -- '^Starting pingpong send to host localhost$' \
	'^Verifying results$' '^Running 20 iterations\.$' '^ +Length +Latency\(us\) +Bandwidth\(MB/s\)$' "${few[@]}"
mapfile -t few < <(rows 100 200 300)
check 'lengths in steps, asleep, synchronous' \
	shows "$tools/mx_pingpong" -d "$host:0" -r "$eid" -N 5 -W 2 -S 100 -E 301 -I 100 -w -R -V -- "${few[@]}"
printf '32768\n\n1048577\n5\n' >"$dir/lengths"
mapfile -t few < <(rows 32768 1048577 5)
check 'lengths of a file' shows "$tools/mx_pingpong" -d localhost -r "$eid" -N 3 -L "$dir/lengths" -V -- "${few[@]}"
nic=$("$tools/mx_info" -q | sed -nE 's/.*addr ([0-9a-f:]+)\)$/\1/p' | head -1 | tr -d :)
check 'the host may be a NIC id, and the board, too' \
	shows "$tools/mx_pingpong" -n "$nic" -d "0x$nic" -r "$eid" -N 3 -E 1 -- "$(rows 0)"
check 'mx_stream prints one row' shows "$tools/mx_stream" -d localhost -r "$eid" -l 4097 -N 200 -V -- \
	'^Running 200 iterations\.$' '^ +Length +Latency\(us\) +Bandwidth\(MB/s\)$' "$(rows 4097)"
check 'mx_stream sends both ways, asleep' shows "$tools/mx_stream" -d localhost -r "$eid" -l 70000 -N 100 -x -w -V -- "$(rows 70000)"
counters_move() {
	shows "$tools/mx_counters" -b 0 -q -- '^[^:]+: [1-9][0-9]*$'
}
check 'mx_counters prints labels and values' counters_move
check 'omx_counters prints numbers, values and labels' shows "$dir/omx_counters" -- '^[0-9]{3}: +[1-9][0-9]* [^ ]'
check 'with -v those that are 0, too' shows "$dir/omx_counters" -v -- '^[0-9]{3}: +0 [^ ]'
sum_of_counters() {
	"$tools/mx_counters" -q | sed -n 's/^[^:]*: //p' | awk '{ sum += $1 } END { print sum + 0 }'
}
# other programs of this host count on meanwhile
cleared() {
	local before try
	for try in 1 2 3 4 5; do
		before=$(sum_of_counters)
		prints_no . "$tools/mx_counters" -c || return
		[ "$(sum_of_counters)" -ge "$before" ] || return 0
		echo "try $try: not less than $before"
	done
	return 1
}
check 'counters can be cleared' cleared
check 'a key that is not the right one is said to be wrong' says 1 'connect: ' "$tools/mx_pingpong" -d localhost -r "$eid" -f 1
check 'lengths that are no numbers are refused' says 2 'not a number' "$tools/mx_pingpong" -d localhost -S many
stop
check 'without a receiver that is said' says 1 'connect: ' timeout 30 "$tools/mx_pingpong" -d localhost -r 253

start "$tools/omx_perf" -e any || { cat "$dir/log" >&2; exit 1; }
perf() {
	local length
	for length; do
		printf '^length +%s:\t[0-9]+\.[0-9]{3} us\t[0-9]+\.[0-9]{2} MB/s\t [0-9]+\.[0-9]{2} MiB/s$\n' "$length"
	done
}
mapfile -t few < <(perf 0 1 2 4 8)
check 'omx_perf prints a line for each length' shows "$tools/omx_perf" -d localhost -r "$eid" -N 10 -E 9 -U -y -a -- \
	'^Starting sender to localhost\.\.\.$' "${few[@]}"
# not within check, whose subshell has no children to wait for
status=0
wait "$server" || status=$?
server=
check 'a receiver ends with its sender' [ "$status" -eq 0 ]

# ---- between processes that share a secret only --------------------------------------------------

(umask 077 && head -c 32 /dev/urandom >"$dir/key")
export PTL_NAL=udp PTL_KEY_FILE=$dir/key
start "$tools/mx_pingpong" -e any || { cat "$dir/log" >&2; exit 1; }
mapfile -t few < <(rows 0 1 40 1600 64000)
check 'over UDP' shows "$tools/mx_pingpong" -d "$host" -r "$eid" -N 5 -W 1 -M 40 -E 64001 -w -V -- "${few[@]}"
status=0
wait "$server" || status=$?
server=
check 'its receiver ends well' [ "$status" -eq 0 ]
tap_done
