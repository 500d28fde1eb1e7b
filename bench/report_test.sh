#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# bench/report measures all of its parts, and its page shows them: a page is opened in a browser, and every
# plot is looked for in the picture. The figures themselves are not judged here.
# Usage: report_test.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
parts=(latency bandwidth rate overlap wait networks availability matching barrier model rwapi mx rwapi_library dp)
# whichever Python has the imaging library, which may be the system's only
python=python3
python3 -c 'import PIL' 2>/dev/null || [ ! -x /usr/bin/python3 ] || python=/usr/bin/python3

if ! command -v gnuplot >/dev/null; then
	tap_skip "the pictures of a report" "gnuplot is not installed"
	tap_done
	exit
fi

# A short run of everything; without others, which may be slow where cores are few.
measured() {
	"$here/report" --prefix "$build" --mpi postern --quick --output "$dir/run" >"$dir/lines" || {
		cat "$dir/lines"
		return 1
	}
	python3 - "$dir/run/report.json" <<-'END'
		import json, sys
		report = json.load(open(sys.argv[1]))
		assert (report['format'], report['program'], report['left_out']) == (1, 'report', [])
		assert report['machine']['class'] and report['machine']['postern'], report['machine']
		for mpi, test in (('postern', 'latency'), ('portals', 'latency'), ('postern', 'bandwidth'),
		                  ('postern', 'rate'), ('postern', 'posted'), ('postern', 'unexpected'),
		                  ('postern', 'barrier'), ('postern', 'comb_pww'),
		                  ('postern', 'comb_polling'), ('portals', 'floor'), ('portals', 'model'),
		                  ('portals', 'rwapi'), ('rwapi', 'rwapi_burst'), ('dp', 'dp message')):
		    found = [f for f in report['results'] if (f['mpi'], f['test']) == (mpi, test)]
		    print(mpi, test, len(found))
		    assert found and all(f['round'] == 1 for f in found)
		assert any(f['variant'] == 'receive over udp' for f in report['results']), 'nothing over UDP'
		places = [word for mpi in report['mpis'] for word in [mpi['mpicc'], *mpi['launch']]
		          if word.startswith('/')]
		assert not places, places
	END
}
# Not on a terminal, a line for each run says how far it is.
lines_of_progress() {
	cat "$dir/lines"
	grep -qE '^[0-9]+:[0-9]{2} 0/[0-9]+, remaining time not known yet: round 1 of 1: latency' \
		"$dir/lines" && grep -qE '^[0-9]+:[0-9]{2} [1-9][0-9]*/[0-9]+, about [0-9]+:[0-9]{2} left: ' \
		"$dir/lines"
}
bar_on_a_terminal() {
	script -qec "stty cols 120; $(printf '%q ' "$here/report" --prefix "$build" --mpi postern --quick \
		--only rate --output "$dir/bar")" "$dir/typescript" >/dev/null </dev/null &&
		tr '\r' '\n' <"$dir/typescript" | grep -aE '█+ +1/3, about [0-9]+:[0-9]{2} left: '
}
# Figures of all parts, made up: three rounds, three MPIs. A report of another machine and time.
made_up() {
	python3 - "$dir/made_up.json" <<-'END'
		import json, random, sys
		rng = random.Random(1)
		figures = []
		def add(mpi, test, value, unit, variant='', size=8, ranks=2, **more):
		    for number in (1, 2, 3):
		        value_now = value * rng.uniform(0.95, 1.05)
		        figures.append({'mpi': mpi, 'round': number, 'test': test, 'variant': variant,
		                        'size': size, 'ranks': ranks, 'unit': unit, 'median': value_now,
		                        'p99': value_now, 'best': value_now, **more})
		sizes = [1, 64, 4096, 65536, 1 << 20]
		for place, mpi in enumerate(('postern', 'mpich', 'openmpi', 'portals'), 1):
		    for size in sizes:
		        add(mpi, 'latency', 100 * place + size / 20, 'ns', size=size)
		        add(mpi, 'bandwidth', 40 / place * size / (size + 9000), 'GB/s', size=size)
		    add(mpi, 'rate', 20 / place, 'M/s')
		    if mpi == 'portals':
		        continue
		    for entries in (1, 100, 10000):
		        for test in ('posted', 'unexpected'):
		            add(mpi, test, 120 * place + entries * (place - 1), 'ns', size=entries)
		    for ranks in (2, 4, 8, 16):
		        add(mpi, 'barrier', 200.0 * place * ranks ** (1 + place / 2), 'ns', size=0, ranks=ranks)
		    for x in (16e3, 64e3, 256e3):
		        wait = 100 * (place - 0.98)
		        add(mpi, 'comb_pww', 90, '%', 'receive', 102400, x=x, values={
		            'work_dry': x, 'work': x * 1.01, 'post': 500, 'wait': 300 * wait, 'wait_share': wait,
		            'availability': 100 * x / (x + 300 * wait)})
		        for network in ('udp', 'ofi') if mpi == 'postern' else ():
		            for both in ('', ', both cores'):
		                add(mpi, 'comb_pww', 80, '%', f'receive over {network}{both}', 102400, x=x, values={
		                    'wait_share': 20 + len(network + both) * x / 1e5 + 15 * (network == 'ofi'),
		                    'availability': 100 * x / (x + 3e4 + 3e4 * (network == 'ofi'))})
		        add(mpi, 'comb_polling', 90, '%', 'receive', 102400, x=x, values={
		            'availability': 100 - 2e6 / x / place, 'bandwidth': 8 / place * 3e4 / (x + 3e4)})
		for kind in ('ping-pong', 'bidirectional', 'burst'):
		    for size in sizes:
		        add('portals', 'rwapi', 60 + len(kind) * 9 + size / 30, 'ns', kind, size)
		        add('portals', 'rwapi throughput', size / (60 + len(kind) * 9 + size / 30), 'GB/s', kind,
		            size)
		for place, (who, way) in enumerate((('mx', 'udp'), ('mx', 'eth'), ('openmpi', 'tcp')), 1):
		    for size in sizes:
		        add(who, 'mx_latency', 9000 * place + size * place, 'ns', way, size)
		for size in sizes:
		    add('rwapi', 'rwapi_burst', 150 + size / 25, 'ns', '', size)
		for packet in '1500', '65536':
		    for size in 10000, 100000, 1000000:
		        add('dp', 'dp message', size / 4, 'ns', packet, size)
		        add('dp', 'dp predicted, network', size / 5, 'ns', packet, size)
		        add('dp', 'dp predicted, receiver', size / 3, 'ns', packet, size)
		for size in sizes:
		    add('portals', 'model', 130 + size / 22, 'ns', 'measured', size)
		    add('portals', 'model', 190 + size / 30, 'ns', 'predicted', size)
		    add('portals', 'floor', 20, 'GB/s', 'pipe', size)
		    add('portals', 'floor', 10, 'GB/s', 'attach', size)
		add('portals', 'floor', 50, 'ns', 'cacheline')
		add('portals', 'floor', 300, 'M/s', 'ring')
		mpis = [{'name': name, 'title': title, 'mpicc': 'mpicc',
		         'launch': [f'mpiexec.{name}', '-n', 'N', 'PROGRAM']}
		        for name, title in (('postern', 'Postern'), ('mpich', 'MPICH 4.0.2'),
		                            ('openmpi', 'Open MPI 4.1.4'))]
		machine = {'class': '4 cores of a kind', 'cpu': 'any', 'cores': 4, 'caches': 'L1d 32 KiB',
		           'memory_gib': 8, 'virtual': 'no', 'system': 'Debian', 'kernel': '6.1',
		           'architecture': 'x86_64', 'compiler': 'cc 1', 'postern': '9.8.7'}
		json.dump({'format': 1, 'program': 'report', 'date': '2026-01-02T03:04:05+00:00', 'cpu': 'any',
		           'kernel': 'Linux', 'cores': [0, 1], 'load': 0.0, 'rounds': 3, 'quick': False,
		           'mpis': mpis, 'left_out': [], 'machine': machine, 'results': figures,
		           'failures': [{'mpi': 'openmpi', 'what': 'bandwidth', 'round': 2, 'again': None,
		                         'why': 'did not end in 300 s'}]},
		          open(sys.argv[1], 'w'))
	END
}
drawn() {
	made_up && "$here/report" --draw "$dir/made_up.json" --output "$dir/page"
}
# The page needs nothing else and says where it is from.
self_contained() {
	python3 - "$dir/page/index.html" "${parts[@]}" <<-'END'
		import html.parser, re, sys
		text = open(sys.argv[1], encoding='utf-8').read()
		names, fetched = [], []
		class Reader(html.parser.HTMLParser):
		    def handle_starttag(self, tag, attrs):
		        attrs = dict(attrs)
		        names.append(attrs.get('id', ''))
		        fetched.extend((tag, name, value) for name, value in attrs.items()
		                       if name in ('src', 'href', 'xlink:href') and not value.startswith('#'))
		        if tag in ('script', 'link', 'iframe', 'object'):
		            fetched.append(tag)
		Reader().feed(text)
		assert not fetched and not re.search(r'@import|url\((?!#)', text), fetched
		missing = [part for part in sys.argv[2:] if part not in names]
		assert not missing, missing
		twice = {name for name in names if name and names.count(name) > 1}
		assert not twice, twice
		for said in ('2026-01-02', '4 cores', 'Postern 9.8.7', 'MPICH 4.0.2', './dev report',
		             'mpiexec.mpich -n N PROGRAM',
		             'Open MPI 4.1.4, bandwidth, round 2: did not end in 300 s. Repeated, it went well.'):
		    assert said in text, said
	END
}
# shown PAGE: every plot is there, or this cannot be checked here: status 77
shown() {
	rm -rf "$dir/look" && mkdir "$dir/look"
	"$python" "$here/report_check.py" "$1" "$dir/look" 2>"$dir/why"
}
# A curve or a plot that is not drawn is found missing: hidden SED PART
hidden() {
	local output
	sed "$1" "$dir/page/index.html" >"$dir/hidden.html"
	! cmp -s "$dir/page/index.html" "$dir/hidden.html" || return
	! output=$(shown "$dir/hidden.html") || return
	echo "$output"
	grep -q "^$2: [^a]" <<<"$output" && grep -q '^barrier: as it should be' <<<"$output"
}
# refused STATUS MESSAGE OPTION...
refused() {
	local want=$1 message=$2 status=0 output
	shift 2
	output=$("$here/report" --prefix "$build" "$@" 2>&1) || status=$?
	echo "status $status: $output"
	[ "$status" -eq "$want" ] && grep -q -e "$message" <<<"$output"
}
no_gnuplot() {
	local output
	mkdir -p "$dir/bin"
	ln -sf "$(command -v env)" "$dir/bin/env"
	ln -sf "$(python3 -c 'import sys; print(sys.executable)')" "$dir/bin/python3"
	! output=$(PATH=$dir/bin "$here/report" --draw "$dir/made_up.json" \
		--output "$dir/none" 2>&1) || return
	echo "$output"
	grep -q 'gnuplot is not installed' <<<"$output"
}

check "a short run measures every part" measured
check "where no terminal is, lines say how far it is and what is left" lines_of_progress
if python3 -c 'import tqdm' 2>/dev/null; then
	check "on a terminal a bar says so" bar_on_a_terminal
else
	tap_skip "on a terminal a bar says so" "python3-tqdm is not installed"
fi
check "figures of a report are drawn" drawn
check "the page stands alone, with machine, date, versions and how to make it again" self_contained
shown_status=0
shown "$dir/page/index.html" >"$dir/seen" || shown_status=$?
if [ "$shown_status" -eq 77 ]; then
	for part in "${parts[@]}"; do
		tap_skip "a browser shows the plot: $part" "$(tail -n 1 "$dir/why")"
	done
else
	for part in "${parts[@]}"; do
		check "a browser shows the plot: $part" grep -x "$part: as it should be" "$dir/seen"
	done
	check "a curve that is missing is noticed" hidden '/<figure id="latency"/,/<\/figure>/{
		s/rgb( *213, *94, *0)/rgb(255,255,255)/g}' latency
	check "a plot that is empty is noticed" hidden \
		'/<figure id="model"/,/<\/figure>/s/<g /<g visibility="hidden" /g' model
fi
check "without gnuplot it says what to install" no_gnuplot
check "an unknown part is refused" refused 2 "no 'speed'" --only speed
check "JSON of another program is not drawn" refused 1 'not a report.json' --draw "$build/meson-info/intro-tests.json"
tap_done
