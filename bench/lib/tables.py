# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints figures of several MPIs side by side, and which targets are met.

A figure is the median over the rounds of each round's median. Only rounds count in which the two cores
were near each other while the figure was taken: where a cache line took at most 2.5 times as long as
in the best round of all. A figure that has no such round is marked with *.
"""
import statistics

NEAR = 2.5
WIDE = ', all cores'  # ends the variant of what was not measured on two cores
OURS = 'postern'
PEERS = ('mpich', 'openmpi')

# test -> (title, what a row is, divisor, unit)
TITLES = {
    'latency': ('latency, half round trip', 'bytes', 1, 'ns'),
    'bandwidth': ('bandwidth, windows of messages one way', 'bytes', 1, 'GB/s'),
    'pingpong': ('bandwidth, ping-pong', 'bytes', 1, 'GB/s'),
    'rate': ('message rate, windows of 64', 'bytes', 1, 'M/s'),
    'ring': ('a token once round the ring', 'ranks', 1e3, 'us'),
    'barrier': ('barrier', 'ranks', 1e3, 'us'),
    'allreduce': ('allreduce, sum of doubles', 'ranks, bytes', 1e3, 'us'),
    'collective': ('collectives of few ranks', 'ranks, bytes', 1e3, 'us'),
    'crowded': ('collectives of more ranks than cores', 'ranks, bytes', 1e3, 'us'),
    'barriers': ('barriers, beside one of messages', 'ranks', 1e3, 'us'),
    'start': ('start to end of a hello world', 'ranks', 1e6, 'ms'),
    'posted': ('per message behind that many posted receives', 'entries', 1, 'ns'),
    'unexpected': ('per message behind that many unexpected ones', 'entries', 1, 'ns'),
    'rma_put': ('one-sided: put and flush', 'window, bytes', 1, 'ns'),
    'rma_get': ('one-sided: get and flush', 'window, bytes', 1, 'ns'),
    'rma_fetch_op': ('one-sided: fetch and add, and flush', 'window, bytes', 1, 'ns'),
    'rma_put_bandwidth': ('one-sided: bandwidth of windows of puts', 'window, bytes', 1, 'GB/s'),
    'rma_accumulate': ('one-sided: add doubles, and flush', 'window, bytes', 1, 'ns'),
    'rma_fence': ('one-sided: put by one, and a fence', 'window, bytes', 1, 'ns'),
    'rma_post': ('one-sided: post and wait, start, put and complete', 'window, bytes', 1, 'ns'),
    'rma_lock_shared': ('one-sided: lock to share, put, unlock', 'window, bytes', 1, 'ns'),
    'rma_lock_exclusive': ('one-sided: lock for oneself, put, unlock', 'window, bytes', 1, 'ns'),
    'udp_latency': ('by UDP, the other by TCP: latency', 'way, bytes', 1, 'ns'),
    'udp_bandwidth': ('by UDP, the other by TCP: bandwidth', 'way, bytes', 1, 'GB/s'),
    'eth_latency': ('by Ethernet frames, the other by TCP: latency', 'way, bytes', 1, 'ns'),
    'eth_bandwidth': ('by Ethernet frames, the other by TCP: bandwidth', 'way, bytes', 1, 'GB/s'),
    'pack': ('packing', 'layout', 1, 'GB/s'),
    'unpack': ('unpacking', 'layout', 1, 'GB/s'),
}

# (what, test, smallest size, largest size, least or most, how many times the better of the others)
TARGETS = (
    ('latency 0 to 64 B', 'latency', 0, 64, 'at most', 1.1),
    ('latency 1 to 16 KiB', 'latency', 1 << 10, 16 << 10, 'at most', 0.9),
    ('bandwidth 64 KiB to 4 MiB, windows', 'bandwidth', 64 << 10, 4 << 20, 'at least', 2.0),
    ('bandwidth 64 KiB to 4 MiB, ping-pong', 'pingpong', 64 << 10, 4 << 20, 'at least', 2.0),
    ('message rate', 'rate', 0, 1 << 20, 'at least', 1.0),
    ('ring', 'ring', 0, 1 << 20, 'at most', 0.5),
    ('barrier', 'barrier', 0, 1 << 20, 'at most', 0.5),
    ('allreduce', 'allreduce', 0, 1 << 20, 'at most', 0.5),
    ('one-sided put', 'rma_put', 0, 64 << 10, 'at most', 0.9),
    ('one-sided get', 'rma_get', 0, 64 << 10, 'at most', 0.9),
    ('one-sided fetch and add', 'rma_fetch_op', 0, 64, 'at most', 0.9),
    ('one-sided put, bandwidth', 'rma_put_bandwidth', 64 << 10, 4 << 20, 'at least', 1.5),
    ('collectives of few ranks', 'collective', 0, 4 << 20, 'at most', 0.9),
    ('collectives', 'crowded', 0, 4 << 20, 'at most', 0.5),
    ('by UDP beside TCP, 64 B', 'udp_latency', 64, 64, 'at most', 0.8),
    ('by UDP beside TCP, 1 MiB', 'udp_bandwidth', 1 << 20, 1 << 20, 'at least', 1.0),
    ('by frames beside TCP, 1 MiB', 'eth_bandwidth', 1 << 20, 1 << 20, 'at least', 1.2),
    ('start of a hello world', 'start', 0, 1 << 20, 'at most', 0.5),
)
# What must not depend on the length of the queue: ours beside ours with the shortest one.
FLAT = (('posted queue', 'posted', 1.1), ('unexpected queue', 'unexpected', 1.1))


def size_text(size):
    for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if size >= unit and size % unit == 0:
            return f'{size // unit} {name}'
    return f'{size} B'


def number(value):
    if value is None:
        return ''
    if value >= 1000:
        return f'{value:,.0f}'
    return f'{value:.1f}' if value >= 10 else f'{value:.3f}'


def with_pingpong(figures):
    """A half round trip of long messages is a bandwidth, too."""
    more = []
    for figure in figures:
        if figure['test'] == 'latency' and figure['size'] >= 64 << 10 and figure['median'] > 0:
            more.append(dict(figure, test='pingpong', unit='GB/s',
                             median=figure['size'] / figure['median']))
    return figures + more


class Figures:
    """All figures: (test, variant, ranks, size) -> median over the rounds, for each MPI."""

    def __init__(self, figures):
        lines = [f['cacheline'] for f in figures if f.get('cacheline')]
        self.best_line = min(lines, default=0)
        self.rounds = {}
        self.keys = {}
        for figure in with_pingpong(figures):
            key = (figure['test'], figure.get('variant', ''), figure['ranks'], figure['size'])
            self.rounds.setdefault((figure['mpi'], key), []).append(figure)
            self.keys.setdefault(figure['test'], {})[key] = None

    def rows(self, test):
        """The keys of a test, each group of them in rising order."""
        keys = list(self.keys.get(test, ()))
        variants = list(dict.fromkeys(key[1] for key in keys))
        return sorted(keys, key=lambda key: (variants.index(key[1]), key[3]
                                             if test == 'allreduce' else key[2], key[2:]))

    def is_near(self, figure):
        return figure.get('cacheline_worst', 0) <= NEAR * self.best_line

    def get(self, mpi, key):
        """(value, mark)"""
        rounds = self.rounds.get((mpi, key))
        if not rounds:
            return None, ''
        near = [r['median'] for r in rounds if self.is_near(r)]
        if near:
            return statistics.median(near), ''
        return statistics.median(r['median'] for r in rounds), '*'

    def line(self, key):
        """What a cache line took in the rounds of this row."""
        lines = [r['cacheline'] for (_, other), rounds in self.rounds.items() if other == key
                 for r in rounds if r.get('cacheline')]
        return statistics.median(lines) if lines else None

    def against(self, key):
        """(ours / the better of the others, that one's name, mark); None when one is missing."""
        ours, mark = self.get(OURS, key)
        others = [(*self.get(peer, key), peer) for peer in PEERS]
        others = [other for other in others if other[0]]
        if ours is None or not others:
            return None
        rises = TITLES[key[0]][3].endswith('/s')
        value, other_mark, peer = max(others) if rises else min(others)
        return ours / value, peer, mark or other_mark


def row_label(key):
    test, variant, ranks, size = key
    if test in ('ring', 'barrier', 'start'):
        return f'{ranks}{variant}'
    if test == 'barriers':
        return f'{ranks}, {variant}'
    if test in ('collective', 'crowded'):
        return f'{ranks}, {variant}, {size_text(size)}'
    if test == 'allreduce':
        return f'{ranks}{variant}, {size_text(size)}'
    if test in ('posted', 'unexpected'):
        return f'{size:,}'
    return f'{variant}, {size_text(size)}' if variant else size_text(size)


def cell(value, mark, divisor):
    return f'{number(value / divisor) if value is not None else "-"}{mark or " "}'


def print_test(test, figures, titles):
    """titles: name -> title of each column, ours first."""
    title, rows_are, divisor, unit = TITLES[test]
    rows = figures.rows(test)
    shown = [mpi for mpi in titles if any(figures.get(mpi, key)[0] for key in rows)]
    if not shown:
        return
    beside = [mpi for mpi in shown if mpi in PEERS and OURS in shown]
    print(f'\n== {title}, {unit}' + (f' (ratio: {titles[OURS]} / the other)' if beside else ''))
    first = max(16, *(len(row_label(key)) for key in rows))
    head = f'{rows_are:>{first}} {"cache line":>10}'
    for mpi in shown:
        head += f' {titles[mpi]:>16}' + (f' {"ratio":>7}' if mpi in beside else '')
    print(head)
    for key in rows:
        ours, _ = figures.get(OURS, key)
        text = f'{row_label(key):>{first}} {number(figures.line(key)):>10}'
        for mpi in shown:
            value, mark = figures.get(mpi, key)
            text += f' {cell(value, mark, divisor):>16}'
            if mpi in beside:
                text += f' {f"{ours / value:.2f}" if ours and value else "":>7}'
        print(text)


def span(values):
    low, high = f'{min(values):.2f}', f'{max(values):.2f}'
    return low if low == high else f'{low} to {high}'


def print_target(what, ratios, bound, limit, than, mark):
    met = all(r <= limit if bound == 'at most' else r >= limit for r in ratios)
    wanted = f'{bound} {limit:.1f} x'
    verdict = 'cores too far apart' if mark else 'met' if met else 'MISSED'
    print(f'{what:<40} {wanted:>15} {span(ratios):>16}  {than:<22} {verdict}')


def beside_messages(figures):
    """Our barrier beside the one of messages of the same run."""
    ratios, marks = [], []
    for key in figures.rows('barriers'):
        ours, mark = figures.get(OURS, key)
        wide = WIDE if key[1].endswith(WIDE) else ''
        messages, other = figures.get(OURS, (key[0], 'messages' + wide, *key[2:]))
        if not key[1].startswith('messages') and ours and messages:
            ratios.append(ours / messages)
            marks.append(mark or other)
    if ratios:
        yield ('barrier beside messages', ratios, 'at most', 0.6, 'itself by messages', any(marks))


def wanted_rows(figures, titles):
    """(what, ratios, bound, limit, beside what, mark) of each target that can be judged."""
    for what, test, low, high, bound, limit in TARGETS:
        keys = [key for key in figures.rows(test) if low <= key[3] <= high]
        for wide, ranks in sorted({(key[1].endswith(WIDE), key[2]) for key in keys}):
            found = [figures.against(key) for key in keys
                     if (key[1].endswith(WIDE), key[2]) == (wide, ranks)]
            found = [one for one in found if one]
            if found:
                names = dict.fromkeys(titles[peer] for _, peer, _ in found)
                yield ((what if ranks == 2 else f'{what}, {ranks} ranks') + (WIDE if wide else ''),
                       [ratio for ratio, _, _ in found], bound, limit, ', '.join(names),
                       any(mark for _, _, mark in found))
    yield from beside_messages(figures)
    for what, test, limit in FLAT:
        rows = [(key, *figures.get(OURS, key)) for key in figures.rows(test)]
        rows = [row for row in rows if row[1]]
        if len(rows) > 1:
            yield (f'{what}, up to {rows[-1][0][3]:,} entries',
                   [value / rows[0][1] for _, value, _ in rows[1:]], 'at most', limit,
                   f'itself with {rows[0][0][3]:,}', any(mark for _, _, mark in rows))


def print_targets(figures, titles):
    rows = list(wanted_rows(figures, titles))
    if not rows:
        return
    print(f'\n== targets: {titles[OURS]} beside the better of the others, row by row')
    print(f'{"what":<40} {"target":>15} {"ratio":>16}  {"better one":<22} verdict')
    for row in rows:
        print_target(*row)


def print_all(results, titles):
    figures = Figures(results)
    for test in TITLES:
        print_test(test, figures, titles)
    if figures.best_line:
        print(f'\na cache line took {figures.best_line:.0f} ns in the best round; rounds with more '
              f'than {NEAR * figures.best_line:.0f} ns are left out, * where none is left')
    if OURS in titles:
        print_targets(figures, titles)
