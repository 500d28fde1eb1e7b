#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Says which lines of the library and its tools each test program executes.

The build directory must count lines:

  meson setup build-cov -Dtests=enabled -Dbuildtype=debug -Doptimization=0 -Db_coverage=true
  ninja -C build-cov -k 0     # mpi_fortran_mixed does not link in such a build

Each program runs with a GCOV_PREFIX of its own. Its result is kept in DIR, and a program whose result is kept does not
run again. The table shows the covered lines of each room (folder) and file, by all programs together.

A process that is killed writes no counters, and neither does a process with an empty environment. Programs that judge
times or system calls may fail in such a build; their lines count all the same.
"""
import argparse
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ('base', 'dp_shim', 'mpi_shim', 'mx_shim', 'nal', 'portals', 'runtime', 'rwapi_shim', 'tools')
GCDA, ARCS = 0x67636461, 0x01a10000


def programs(build, names, wanted, left_out):
    """Those named, or those with one of the wanted suites, if any are, and none of the suites left out."""
    shown = subprocess.run(['meson', 'introspect', '--tests', str(build)], check=True, stdout=subprocess.PIPE).stdout
    for test in json.loads(shown):
        suites = {suite.partition(':')[2] for suite in test['suite']}
        if test['name'] in names or not names and (not wanted or suites & wanted) and not suites & left_out:
            yield test


def counted(path):
    """Whether a counter in the file is not zero. Counters that are all zero are written as a negative length."""
    data = path.read_bytes()
    at = 16
    if len(data) < at or struct.unpack_from('<I', data)[0] != GCDA:
        return False
    while at + 8 <= len(data):
        tag, length = struct.unpack_from('<Ii', data, at)
        if tag == ARCS and length > 0:
            return True
        at += 8 + max(length, 0)
    return False


def lines_of(folder, files):
    """{source: {line: executed}} of the sources in our rooms, as gcov reports them for the files."""
    lines = collections.defaultdict(dict)
    for some in (files[i:i + 100] for i in range(0, len(files), 100)):
        said = subprocess.run(['gcov', '--json-format', '--stdout', *map(str, some)], cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for unit in map(json.loads, said.splitlines()):
            for source in unit['files']:
                path = os.path.normpath(os.path.join(unit['current_working_directory'], source['file']))
                name = os.path.relpath(path, SOURCE)
                if name.split('/')[0] not in ROOMS:
                    continue
                of = lines[name]
                for line in source['lines']:
                    of[line['line_number']] = of.get(line['line_number'], False) or line['count'] > 0
    return lines


def is_ours(path):
    """Whether an object of the build directory may hold our sources: unit tests compile some of them, too."""
    return path.parts[0] != 'test' or '.._' in path.name


def run(test, build, folder):
    """Runs a program. Returns its covered lines, its time and its exit status."""
    prefix = folder / re.sub(r'\W', '_', test['name'])
    shutil.rmtree(prefix, ignore_errors=True)
    env = dict(os.environ, **test['env'], GCOV_PREFIX=str(prefix),
               LD_PRELOAD=str(folder / 'exit.so'))
    start, status = time.monotonic(), None
    with open(folder / f'{prefix.name}.log', 'wb') as log:
        child = subprocess.Popen(test['cmd'], env=env, cwd=test['workdir'] or build, start_new_session=True,
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            status = child.wait(5 * test['timeout'])
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    seconds = time.monotonic() - start
    written = prefix / build.relative_to('/')
    files = [f for f in written.rglob('*.gcda') if is_ours(f.relative_to(written)) and counted(f)]
    for file in files:
        notes = pathlib.Path('/', file.relative_to(prefix)).with_suffix('.gcno')
        file.with_suffix('.gcno').symlink_to(notes)
    covered = {name: sorted(line for line, ran in of.items() if ran) for name, of in lines_of(prefix, files).items()}
    shutil.rmtree(prefix, ignore_errors=True)
    return {'seconds': seconds, 'status': status, 'covered': {name: of for name, of in covered.items() if of}}


def gather(tests, build, folder, jobs):
    """{program: result of run}. Programs whose results are kept do not run."""
    def one(test):
        kept = folder / (re.sub(r'\W', '_', test['name']) + '.json.gz')
        if not kept.exists():
            told = json.dumps(run(test, build, folder)).encode()
            kept.with_suffix('.new').write_bytes(gzip.compress(told))
            kept.with_suffix('.new').rename(kept)
        return json.loads(gzip.decompress(kept.read_bytes()))

    results = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in [(test['name'], pool.submit(one, test)) for test in tests]:
            results[done[0]] = done[1].result()
            if results[done[0]]['status'] not in (0, 77):
                print(f'{done[0]}: status {results[done[0]]["status"]}', flush=True)
    return results


def all_lines(build, folder):
    """{source: lines with code}."""
    kept = folder / 'lines.json.gz'
    if not kept.exists():
        notes = [f for f in build.rglob('*.gcno') if is_ours(f.relative_to(build))]
        told = {name: sorted(of) for name, of in lines_of(folder, notes).items()}
        kept.write_bytes(gzip.compress(json.dumps(told).encode()))
    return json.loads(gzip.decompress(kept.read_bytes()))


def union(results):
    covered = collections.defaultdict(set)
    for result in results:
        for name, of in result['covered'].items():
            covered[name].update(of)
    return covered


def show(lines, covered):
    rooms = collections.defaultdict(lambda: [0, 0])
    for name, of in sorted(lines.items()):
        n = len(covered.get(name, set()) & set(of))
        for room in (name.split('/')[0], os.path.dirname(name), name, 'all'):
            rooms[room][0] += n
            rooms[room][1] += len(of)
    for room, (n, of) in sorted(rooms.items()):
        print(f'{100 * n / of:5.1f} %  {n:6} of {of:6}  {room}')


def ranges(numbers):
    """1 2 3 7 as 1-3,7."""
    parts = []
    for n in sorted(numbers):
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ','.join(str(a) if a == b else f'{a}-{b}' for a, b in parts)


def choose(results, times):
    """A small set that covers all covered lines: greedily the program that adds the most lines per second."""
    left = {(name, line) for name, of in union(results.values()).items() for line in of}
    sets = {name: {(file, line) for file, of in result['covered'].items() for line in of}
            for name, result in results.items()}
    chosen = []
    while left:
        name = max(sets, key=lambda n: len(sets[n] & left) / (0.1 + times.get(n, results[n]['seconds'])))
        chosen.append((name, len(sets[name] & left), times.get(name, results[name]['seconds'])))
        left -= sets.pop(name)
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path, help='build directory with b_coverage')
    parser.add_argument('names', nargs='*', metavar='NAME', help='only these programs')
    parser.add_argument('--suite', action='append', default=[], help='only programs of this suite (may be repeated)')
    parser.add_argument('--no-suite', action='append', default=[], help='none of this suite; without one: all')
    parser.add_argument('--every', action='store_true', help='those of the suite `all`, too')
    parser.add_argument('--keep', metavar='DIR', type=pathlib.Path, help='where results are kept: BUILD/coverage')
    parser.add_argument('-j', type=int, default=os.cpu_count() + 1, help='programs at a time')
    parser.add_argument('--choose', action='store_true', help='say which few programs cover together what all do')
    parser.add_argument('--times', metavar='TESTLOG', type=pathlib.Path,
                        help="take the programs' times from meson-logs/testlog.json of a quiet run")
    parser.add_argument('--lost', metavar='SUITES', help='the lines that only programs of these suites cover: a,b')
    args = parser.parse_args()

    build = args.build.resolve()
    folder = (args.keep or build / 'coverage').resolve()
    folder.mkdir(exist_ok=True)
    if not (folder / 'exit.so').exists():
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', f'-DBUILD="{build}/"', '-o', str(folder / 'exit.so'),
                        str(SOURCE / 'test/support/coverage_exit.c')], check=True)
    left_out = set(args.no_suite) | (set() if args.every else {'all'})
    tests = list(programs(build, set(args.names), set(args.suite), left_out))
    results = gather(tests, build, folder, args.j)
    lines = all_lines(build, folder)
    covered = union(results.values())
    show(lines, covered)
    print(f'{len(results)} programs, {sum(r["seconds"] for r in results.values()):.0f} s')
    if args.lost:
        suites = set(args.lost.split(','))
        rest = {t['name'] for t in tests if not suites & {s.partition(':')[2] for s in t['suite']}}
        others = union(result for name, result in results.items() if name in rest)
        for name, of in sorted(covered.items()):
            if of - others.get(name, set()):
                print(f'only in {args.lost}: {name}: {ranges(of - others.get(name, set()))}')
    if args.choose:
        times = {}
        if args.times:
            for record in map(json.loads, args.times.read_text().splitlines()):
                times[record['name'].rpartition(' / ')[2]] = record['duration']
        chosen = choose(results, times)
        for name, n, seconds in chosen:
            print(f'{n:6} lines  {seconds:6.1f} s  {name}')
        print(f'chosen: {len(chosen)} programs, {sum(c[2] for c in chosen):.0f} s')


if __name__ == '__main__':
    main()
