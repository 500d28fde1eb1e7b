#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints the figures of several programs side by side.

Usage: compare_table.py DIR PROGRAM...

DIR holds PROGRAM-ROUND.json for each round; the first program is the one the others are compared
with. A figure is the median over the rounds of each round's median. Only rounds count in which the
two cores were near each other while the figure was taken: where a cache line took at most 2.5 times
as long as in the best round of all. A figure that has no such round is marked with *.
"""
import json
import pathlib
import statistics
import sys

NAMES = {'ptlperf': 'Portals', 'openmpi': 'Open MPI', 'mpich': 'MPICH'}
NEAR = 2.5
FLOORS = {'latency': ('cacheline', 'cache line'), 'bandwidth': ('attach', 'attach')}
TITLES = {
    'latency': 'latency, half round trip, ns (ratio: MPI / Portals, above 1 Portals is faster)',
    'bandwidth': 'bandwidth, GB/s (ratio: Portals / MPI, above 1 Portals is faster)',
}


def load(folder, program):
    """All figures of all rounds."""
    figures = []
    for path in sorted(folder.glob(f'{program}-*.json')):
        figures += json.loads(path.read_text())['results']
    return [figure for figure in figures if figure.get('cacheline')]


class Figures:
    """(test, size) -> (median over the rounds that count, mark) of one program."""

    def __init__(self, figures, limit):
        self.limit = limit
        self.rounds = {}
        for figure in figures:
            key = (figure['test'], figure['size'])
            if figure['test'] == 'floor':
                key = ('floor', figure['variant'], figure['size'])
            self.rounds.setdefault(key, []).append(figure)

    def sizes(self, test):
        return sorted(key[1] for key in self.rounds if key[0] == test)

    def get(self, *key):
        rounds = self.rounds.get(key)
        if not rounds:
            return None, ''
        near = [r['median'] for r in rounds if r['cacheline_worst'] <= self.limit]
        if near:
            return statistics.median(near), ' '
        return statistics.median(r['median'] for r in rounds), '*'


def size_text(size):
    for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if size >= unit and size % unit == 0:
            return f'{size // unit} {name}'
    return str(size)


def number(value):
    if value is None:
        return ''
    return f'{value:.1f}' if value >= 10 else f'{value:.3f}'


def print_table(test, results):
    first, *others = results
    variant, floor_name = FLOORS[test]
    print(f'\n== {TITLES[test]}')
    head = f'{"bytes":>8} {floor_name:>11} {NAMES[first]:>10} '
    for other in others:
        head += f' {NAMES[other]:>10}  {"ratio":>6}'
    print(head)
    for size in results[first].sizes(test):
        ours, mark = results[first].get(test, size)
        floor, _ = results[first].get('floor', variant, 64 if test == 'latency' else size)
        line = f'{size_text(size):>8} {number(floor):>11} {number(ours):>10}{mark}'
        for other in others:
            line += column(test, ours, *results[other].get(test, size))
        print(line)


def column(test, ours, theirs, mark):
    if theirs is None:
        return f' {"":>10}  {"":>6}'
    ratio = theirs / ours if test == 'latency' else ours / theirs
    return f' {number(theirs):>10}{mark} {ratio:>6.2f}'


def print_aim(results):
    """8 bytes: not slower than Open MPI plus 50 ns."""
    if 'openmpi' not in results:
        return
    ours, mark = results['ptlperf'].get('latency', 8)
    theirs, other_mark = results['openmpi'].get('latency', 8)
    verdict = 'met' if ours <= theirs + 50 else 'missed'
    if '*' in mark + other_mark:
        verdict = 'not to be compared: the cores were not equally near'
    print(f'\n   aim: 8-byte put at most Open MPI + 50 ns: {ours:.1f} against {theirs + 50:.1f} ns: '
          f'{verdict}')


def main():
    if len(sys.argv) < 3 or sys.argv[1] == '--help':
        print(__doc__.strip())
        return 0 if '--help' in sys.argv else 2
    folder = pathlib.Path(sys.argv[1])
    loaded = {program: load(folder, program) for program in sys.argv[2:]}
    best = min(figure['cacheline'] for figures in loaded.values() for figure in figures)
    results = {program: Figures(figures, NEAR * best) for program, figures in loaded.items()}
    for test in FLOORS:
        print_table(test, results)
    print(f'   a cache line took {best:.0f} ns in the best round; rounds with more than '
          f'{NEAR * best:.0f} ns are left out, * where none is left')
    print_aim(results)
    return 0


if __name__ == '__main__':
    sys.exit(main())
