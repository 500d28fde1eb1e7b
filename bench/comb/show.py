# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints comb's figures of several MPIs side by side, and whether the target is met.

A figure is the median over the rounds in which the two cores were near each other, as in tables.py.
"""
import statistics

import tables

# test -> (title, what x is, columns: (value, head))
TESTS = {
    'comb_pww': ('post-work-wait', 'us of work',
                 (('availability', 'avail.'), ('work_availability', 'work'),
                  ('cpu_availability', 'cpu'), ('wait_share', 'wait'))),
    'comb_polling': ('polling', 'us of work',
                     (('availability', 'avail.'), ('cpu_availability', 'cpu'),
                      ('bandwidth', 'GB/s'))),
}
WIDTH = 7
# of us, at this size, receiving, where the work is so many times as long as the messages take when nobody
# works: moved by the sender alone they take about three times as long
TARGET_SIZE = 100 << 10
LEAST_AVAILABILITY, MOST_WAIT = 97, 5
ROOM = 4


class Overlaps:
    """All figures: what is the same but for the round is one."""

    def __init__(self, figures):
        lines = [figure['cacheline'] for figure in figures if figure.get('cacheline')]
        self.far = tables.NEAR * min(lines, default=0)
        self.rounds = {}
        self.points = {}  # a table's key -> its places on the axis
        for figure in figures:
            table = (figure['test'], figure['variant'], figure['size'], figure['batch'])
            self.points.setdefault(table, {})[figure['x']] = None
            self.rounds.setdefault((figure['mpi'], table, figure['x']), []).append(figure)

    def get(self, mpi, table, x, name):
        """(value, mark); the mark tells of rounds with cores far apart, where there are no others."""
        rounds = self.rounds.get((mpi, table, x), [])
        if not rounds:
            return None, ''
        near = [figure for figure in rounds if figure.get('cacheline_worst', 0) <= self.far]
        value = statistics.median(figure['values'][name] for figure in near or rounds)
        return value, '' if near or not self.far else '*'

    def transfer(self, mpi, table):
        found = [self.get(mpi, table, x, 'transfer')[0] for x in self.points[table]]
        found = [value for value in found if value]
        return statistics.median(found) if found else None


def text_of(value, mark):
    if value is None:
        return f'{"-":>{WIDTH - 1}} '
    shown = f'{value:.2f}' if value < 10 else f'{value:.1f}'
    return f'{shown:>{WIDTH - 1}}{mark or " "}'


def print_table(overlaps, table, titles):
    test, variant, size, batch = table
    title, axis, columns = TESTS[test]
    width = WIDTH * len(columns)
    print(f'\n== {title}, {variant}, {tables.size_text(size)} x {batch}')
    if test == 'comb_pww':
        alone = [(titles[mpi], overlaps.transfer(mpi, table)) for mpi in titles]
        print('the messages alone take ' + ', '.join(f'{value / 1e3:.1f} us with {name}'
                                               for name, value in alone if value))
    print(f'{"":>11} ' + ''.join(f'|{name:^{width}.{width}}' for name in titles.values()))
    print(f'{axis:>11} ' + ''.join('|' + ''.join(f'{head:>{WIDTH - 1}} ' for _, head in columns)
                                   for _ in titles))
    for x in sorted(overlaps.points[table]):
        print(f'{x / 1e3:>11,.1f} ' + ''.join(
            '|' + ''.join(text_of(*overlaps.get(mpi, table, x, name)) for name, _ in columns)
            for mpi in titles))


def judged(overlaps):
    """(table, availability at least, wait at most, mark) of each table that has a target."""
    for table, xs in overlaps.points.items():
        if table[:3] != ('comb_pww', 'receive', TARGET_SIZE):
            continue
        transfer = overlaps.transfer(tables.OURS, table)
        rows = [[overlaps.get(tables.OURS, table, x, name)
                 for name in ('availability', 'wait_share')]
                for x in xs if transfer and x >= ROOM * transfer]
        rows = [row for row in rows if row[0][0] is not None]
        if rows:
            yield (table, min(row[0][0] for row in rows), max(row[1][0] for row in rows),
                   any(mark for row in rows for _, mark in row))


def print_targets(overlaps, titles):
    rows = list(judged(overlaps))
    if not rows:
        return
    print(f'\n== targets of {titles[tables.OURS]}, where the work takes {ROOM} times as long as the '
          'messages, or longer')
    for table, availability, wait, mark in rows:
        what = f'receive, {tables.size_text(table[2])} x {table[3]}'
        for name, value, bound, limit, met in (
                ('availability', availability, 'at least', LEAST_AVAILABILITY,
                 availability >= LEAST_AVAILABILITY),
                ('wait', wait, 'at most', MOST_WAIT, wait <= MOST_WAIT)):
            verdict = 'cores too far apart' if mark else 'met' if met else 'MISSED'
            print(f'{what}, {name:<14} {bound} {limit} %: {value:5.1f} %  {verdict}')


def print_all(figures, titles):
    overlaps = Overlaps(figures)
    shown = {mpi: title for mpi, title in titles.items()
             if any(figure['mpi'] == mpi for figure in figures)}
    print('\navail.: availability in %; work: of the work phase alone; cpu: of processor time, that of all '
          'threads;\nwait: the wait phase in % of what the messages alone take')
    for table in overlaps.points:
        print_table(overlaps, table, shown)
    if any(figure.get('cacheline') for figure in figures):
        print(f'\nrounds in which a cache line took more than {overlaps.far:.0f} ns are left out, * '
              'where none is left')
    if tables.OURS in shown:
        print_targets(overlaps, shown)
