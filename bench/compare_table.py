#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints the figures of several programs side by side.

Usage: compare_table.py DIR PROGRAM...

DIR holds PROGRAM-ROUND.json for each round; the first program is the one the others are compared
with. Figures are medians over the rounds of each round's median.
"""
import json
import pathlib
import statistics
import sys

NAMES = {'ptlperf': 'Portals', 'openmpi': 'Open MPI', 'mpich': 'MPICH'}
FLOORS = {'latency': ('cacheline', 'cache line'), 'bandwidth': ('attach', 'attach')}
TITLES = {
    'latency': 'latency, half round trip, ns (ratio: MPI / Portals, above 1 Portals is faster)',
    'bandwidth': 'bandwidth, GB/s (ratio: Portals / MPI, above 1 Portals is faster)',
}


def load(folder, program):
    """(test, size) -> median over rounds; floors have ('floor', variant, size) as keys."""
    values = {}
    for path in sorted(folder.glob(f'{program}-*.json')):
        for figure in json.loads(path.read_text())['results']:
            key = (figure['test'], figure['size'])
            if figure['test'] == 'floor':
                key = ('floor', figure['variant'], figure['size'])
            values.setdefault(key, []).append(figure['median'])
    return {key: statistics.median(medians) for key, medians in values.items()}


def size_text(size):
    for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if size >= unit and size % unit == 0:
            return f'{size // unit} {name}'
    return str(size)


def print_table(test, results):
    first, *others = results
    variant, floor_name = FLOORS[test]
    print(f'\n== {TITLES[test]}')
    head = f'{"bytes":>8} {floor_name:>11} {NAMES[first]:>10}'
    for other in others:
        head += f' {NAMES[other]:>10} {"ratio":>6}'
    print(head)
    for size in sorted(key[1] for key in results[first] if key[0] == test):
        ours = results[first][test, size]
        floor = results[first].get(('floor', variant, 64 if test == 'latency' else size))
        line = f'{size_text(size):>8} {f"{floor:.1f}" if floor else "":>11} {ours:>10.1f}'
        for other in others:
            theirs = results[other].get((test, size))
            if theirs is None:
                line += f' {"":>10} {"":>6}'
                continue
            ratio = theirs / ours if test == 'latency' else ours / theirs
            line += f' {theirs:>10.1f} {ratio:>6.2f}'
        print(line)


def print_aim(results):
    """8 bytes: not slower than Open MPI plus 50 ns."""
    if 'openmpi' not in results:
        return
    ours, theirs = results['ptlperf']['latency', 8], results['openmpi']['latency', 8]
    verdict = 'met' if ours <= theirs + 50 else 'missed'
    print(f'\n   aim: 8-byte put at most Open MPI + 50 ns: {ours:.1f} against {theirs + 50:.1f} ns: '
          f'{verdict}')


def main():
    if len(sys.argv) < 3 or sys.argv[1] == '--help':
        print(__doc__.strip())
        return 0 if '--help' in sys.argv else 2
    folder = pathlib.Path(sys.argv[1])
    results = {program: load(folder, program) for program in sys.argv[2:]}
    for test in FLOORS:
        print_table(test, results)
    print_aim(results)
    return 0


if __name__ == '__main__':
    sys.exit(main())
