#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Jobs on other machines: which engine gets them, and with which options. The engines here are scripts that print
# their arguments. Usage: test_mpiexec_engines.sh MPIEXEC
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID MPIEXEC_TIMEOUT LD_LIBRARY_PATH "${!PTL_@}" "${!SLURM_@}"
mkdir "$dir/bin"
# what the script needs stays in reach where PATH has the engines alone
cat >"$dir/engine" <<'END'
#!/bin/bash
printf '%s' "${0##*/}"
printf ' <%s>' "$@"
printf '\n'
echo "timeout ${MPIEXEC_TIMEOUT-} set ${SET-} topo ${HYDRA_TOPO_DEBUG-}"
if [ -n "${READS-}" ]; then while read -r line; do echo "read $line"; done; fi
exit 7
END
chmod +x "$dir/engine"

# has ENGINE...: these are installed, and nothing else
has() {
	rm -rf "${dir:?}/bin"
	mkdir "$dir/bin"
	local engine
	for engine; do
		cp "$dir/engine" "$dir/bin/$engine"
	done
}
run() {
	status=0
	echo typed | PATH=$dir/bin "$mpiexec" "$@" >"$dir/out" 2>"$dir/err" || status=$?
}
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
err_has() { grep -Eq -- "$1" "$dir/err"; }
# becomes COMMAND ARGS...: the engine has these arguments
becomes() {
	local command=$1
	shift
	run "$@"
	need status_is 7
	need [ "$(head -n 1 "$dir/out")" = "$command" ]
}
refused() { # TEXT ARGS...
	local text=$1
	shift
	run "$@"
	need status_is 2
	need err_has "$text"
}
hosts=(-host '192.0.2.1:2,192.0.2.2')
root=
[ "$(id -u)" -ne 0 ] || root=' <--allow-run-as-root>'

# ---- which one -----------------------------------------------------------------------------------

hydra_first() {
	has mpiexec.hydra prterun srun
	becomes 'mpiexec.hydra <-hosts> <192.0.2.1:2,192.0.2.2:1> <-n> <3> <x> <a b>' "${hosts[@]}" x 'a b'
}
prterun_next() {
	has prterun srun
	becomes "prterun$root <--host> <192.0.2.1:2,192.0.2.2:1> <-n> <3> <x>" "${hosts[@]}" x
}
none_there() {
	has srun # which starts what is allocated, and nothing is
	run "${hosts[@]}" x
	need status_is 127
	need err_has '192\.0\.2\.1 is another machine, and no engine is installed .* mpich .*prrte .*slurm-client'
}
asked_for() {
	has mpiexec.hydra
	becomes 'mpiexec.hydra <-n> <2> <x>' --launcher hydra -n 2 x
	run --launcher prterun "${hosts[@]}" x
	need status_is 127
	need err_has 'asks for prterun, which is not installed; install the package prrte'
	refused '--?launcher needs embedded, hydra' --launcher nothing x
}
said() {
	has mpiexec.hydra
	run -v "${hosts[@]}" -env SET "it's" x
	need status_is 7
	need err_has "^mpiexec: running $dir/bin/mpiexec.hydra -hosts 192.0.2.1:2,192.0.2.2:1 -n 3 -env SET 'it'\\\\''s' x\$"
}
hostile() {
	has mpiexec.hydra
	refused 'is no name of a host' -host '-oProxyCommand=x' y
	refused 'is no name of a host' -host '192.0.2.1,a;b' y
}
check 'Hydra, if all are there' hydra_first
check 'prterun without it' prterun_next
check 'none: an error that names the packages' none_there
check 'the one that is asked for' asked_for
check '-v says what is run' said
check 'a name that a shell would take for an option' hostile

# ---- Hydra ---------------------------------------------------------------------------------------

hydra() {
	has mpiexec.hydra
	local expected=$1
	shift
	becomes "mpiexec.hydra $expected" "${hosts[@]}" "$@"
}
h='<-hosts> <192.0.2.1:2,192.0.2.2:1>'
hydra_hostfile() {
	has mpiexec.hydra
	printf '192.0.2.1 slots=3\n192.0.2.2:2\n' >"$dir/hosts"
	becomes 'mpiexec.hydra <-hosts> <192.0.2.1:3,192.0.2.2:2> <-n> <5> <x>' -f "$dir/hosts" x
	becomes 'mpiexec.hydra <-hosts> <192.0.2.1:1,192.0.2.2:1> <-n> <2> <x>' -f "$dir/hosts" -ppn 1 x
	becomes 'mpiexec.hydra <-hosts> <192.0.2.1:1,192.0.2.2:1> <-n> <6> <x>' -f "$dir/hosts" -bynode -n 6 x
}
hydra_programs() {
	has mpiexec.hydra
	becomes 'mpiexec.hydra <-hosts> <192.0.2.1:1,192.0.2.2:2> <-n> <1> <x> <:> <-n> <2> <y>' \
		-host 192.0.2.1 x : -host 192.0.2.2:2 y
}
hydra_rest() {
	has mpiexec.hydra
	run "${hosts[@]}" --timeout 2.5 --report-bindings x
	need grep -q '^timeout 3 set  topo 1$' "$dir/out"
	READS=1 run "${hosts[@]}" -s none x
	need status_is 7
	need [ "$(grep -c '^read' "$dir/out")" -eq 0 ]
	READS=1 run "${hosts[@]}" x
	need grep -q '^read typed' "$dir/out"
	refused '--merge.* is not what mpiexec.hydra can do|-merge.* is not what mpiexec.hydra can do' "${hosts[@]}" -merge-stderr-to-stdout x
	refused 'is not what mpiexec.hydra can do; write core' "${hosts[@]}" --bind-to share x
	refused 'is not what mpiexec.hydra can do; rank 0 reads' "${hosts[@]}" -s all x
	refused "a host's IPv6 address is not what mpiexec.hydra can do; write its name" -host '[2001:db8::1]:2' x
}
check 'Hydra: hostfiles, -ppn, by node' hydra_hostfile
check 'Hydra: programs on hosts of their own' hydra_programs
check 'Hydra: remote shell and interface' hydra \
	"<-launcher> <ssh> <-launcher-exec> </bin/rsh> <-iface> <eth0> $h <-n> <3> <x>" \
	-launcher ssh -launcher-exec /bin/rsh -iface eth0 x
check 'Hydra: output' hydra \
	"$h <-disable-auto-cleanup> <-prepend-rank> <-outfile-pattern> <o.%r> <-n> <3> <x>" \
	--keep-going -l -o 'o.%t' x
check 'Hydra: binding' hydra "$h <-bind-to> <core:2> <-map-by> <socket> <-n> <3> <x>" \
	--bind-to core:2 --map-by socket x
check 'Hydra: several cores, named before the unit' hydra "$h <-bind-to> <core:8> <-n> <3> <x>" --map-by slot:PE=8 --bind-to core x
check 'Hydra: several cores and no binding' hydra "$h <-bind-to> <none> <-n> <3> <x>" --bind-to none -cpus-per-rank 2 x
check 'Hydra: no binding and several cores' hydra "$h <-bind-to> <none> <-n> <3> <x>" -cpus-per-rank 2 --bind-to none x
check 'Hydra: lists of processors' hydra "$h <-bind-to> <user:0+1+2,4+6,7> <-n> <3> <x>" --bind-to user:0-2,4+6,7 x
check 'Hydra: environment' hydra \
	"$h <-genvnone> <-genv> <A> <1> <-n> <4> <-wdir> </tmp> <-envlist> <B,C> <-env> <D> <2> <x>" \
	-genvnone -genv A 1 -n 4 -wdir /tmp -envlist B,C -x D=2 x
check 'Hydra: what stays' hydra_rest

# ---- prterun -------------------------------------------------------------------------------------

prterun() {
	has prterun
	local expected=$1
	shift
	becomes "prterun$root $expected" "${hosts[@]}" "$@"
}
p='<--host> <192.0.2.1:2,192.0.2.2:1> <-n> <3>'
prterun_env() {
	has prterun
	PTL_QUIET=1 becomes "prterun$root $p <-x> <PTL_QUIET> <-x> <A=1> <x>" "${hosts[@]}" -genv A 1 x
	PTL_QUIET=1 becomes "prterun$root $p <x>" "${hosts[@]}" -genvnone x
	refused 'write --output-filename' "${hosts[@]}" -outfile-pattern 'x.%r' x
}
check 'prterun: placing' prterun \
	"<--map-by> <ppr:2:node:PE=2:OVERSUBSCRIBE> <--bind-to> <core> <--display> <bind> <--host> <192.0.2.1:2,192.0.2.2:2> <-n> <4> <x>" \
	-ppn 2 --map-by slot:PE=2 -oversubscribe --report-bindings x
check 'prterun: output' prterun \
	"<--runtime-options> <continuous> <--timeout> <9> <--output> <tag,merge-stderr-to-stdout,file=f> <--stdin> <all> $p <x>" \
	--keep-going --timeout 9 -l --output-filename f -merge-stderr-to-stdout -s all x
check 'prterun: output to a file' prterun "<--output> <file=f> $p <x>" --output-filename f x
check 'prterun: remote shell' prterun "<--prtemca> <plm_ssh_agent> </bin/rsh> $p <x>" -launcher-exec /bin/rsh x
check 'prterun: environment' prterun_env
prterun_refuses() {
	has prterun
	refused '-iface is not what prterun can do; set PTL_IFACE' "${hosts[@]}" -iface eth0 x
}
check 'prterun: an interface' prterun_refuses

# ---- srun ----------------------------------------------------------------------------------------

allocated() {
	local expected=$1
	shift
	SLURM_JOB_ID=3 SLURM_JOB_NUM_NODES=2 SLURM_TASKS_PER_NODE='4(x2)' becomes "$expected" "$@"
}
s='srun <--mpi=pmi2>'
allocation() {
	has mpiexec.hydra srun
	allocated "$s <--ntasks=8> <--kill-on-bad-exit=1> <--input> <0> <x>" x
	allocated "$s <--ntasks=4> <--ntasks-per-node=2> <--kill-on-bad-exit=1> <--input> <0> <x>" -ppn 2 x
	allocated 'mpiexec.hydra <-n> <1> <x> <:> <-n> <2> <y>' x : -n 2 y
	has mpiexec.hydra
	allocated 'mpiexec.hydra <-n> <8> <x>' x
	has
	SLURM_JOB_ID=3 SLURM_JOB_NUM_NODES=2 run x
	need status_is 127
	need err_has 'the allocation of Slurm has 2 nodes, and no engine is installed'
}
slurm_options() {
	has srun
	allocated "$s <--ntasks=3> <--distribution> <arbitrary> <--nodelist> <192.0.2.1*2,192.0.2.2> <--kill-on-bad-exit=0> <--time=0:01:30> <--label> <--output> <o.%t.%N> <--error> <all> <--input> <all> <--cpu-bind=verbose,cores> <--chdir> </tmp> <x>" \
		"${hosts[@]}" --keep-going --timeout 90 -l -o 'o.%r.%h' -s all --bind-to core --report-bindings -wdir /tmp x
	allocated "$s <--ntasks=2> <--overcommit> <--kill-on-bad-exit=1> <--input> <0> <--export=A,SET> <x>" \
		-n 2 -O -genvlist A -x 'SET=1,2' x
	need grep -q 'set 1,2 ' "$dir/out"
	allocated "$s <--ntasks=2> <--kill-on-bad-exit=1> <--input> <0> <--export=ALL,SET> <x>" -n 2 -genv SET 1 x
	allocated "$s <--ntasks=2> <--kill-on-bad-exit=1> <--input> <0> <--export=ALL> <x>" -n 2 -genvall x
	allocated "$s <--ntasks=2> <--kill-on-bad-exit=1> <--error> <e.%t> <--input> <0> <x>" -n 2 -e 'e.%r' x
	SLURM_JOB_ID=3 SLURM_JOB_NUM_NODES=2 refused '-iface is not what srun can do; set PTL_IFACE' --launcher srun -iface eth0 x
	SLURM_JOB_ID=3 SLURM_JOB_NUM_NODES=2 refused 'a colon between programs is not what srun can do' \
		--launcher srun x : y
}
check 'an allocation with several nodes' allocation
check 'srun: options' slurm_options

tap_done
