# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints figures of several MPIs side by side, and which targets are met.

The machine needs some time for the bare copies (`BARE`), without any MPI. A target is at the floor where it
leaves less than a tenth over that, and ours does not show that it can be faster.

A figure is the median over the rounds of each round's median. Only rounds count in which the two cores
were near each other while the figure was taken: where a cache line took at most 2.5 times as long as
in the best round of all. Where one of the MPIs of a row has no such round all of the row's count, marked with *.
"""
import statistics

NEAR = 2.5
WIDE = ', all cores'  # ends the variant of what was not measured on two cores
OURS = 'postern'
MESSAGES = ('messages', 'messages, few waits')  # barriers made of them
PEERS = ('mpich', 'openmpi')
BARE = 'bare'
ABOVE_BARE = 1.1

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
    'partitioned': ('bandwidth of partitioned sends, beside one persistent send', 'partitions, bytes', 1, 'GB/s'),
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
    'files_plain_write': ('files: pwrite, without MPI', 'file system, access, ranks, bytes', 1, 'GB/s'),
    'files_plain_read': ('files: pread, without MPI', 'file system, access, ranks, bytes', 1, 'GB/s'),
    'files_alone_write': ('files: each rank writes', 'file system, access, ranks, bytes', 1, 'GB/s'),
    'files_alone_read': ('files: each rank reads', 'file system, access, ranks, bytes', 1, 'GB/s'),
    'files_together_write': ('files: all write together', 'file system, access, ranks, bytes', 1, 'GB/s'),
    'files_together_read': ('files: all read together', 'file system, access, ranks, bytes', 1, 'GB/s'),
    'files_overlap': ('files: work while 64 MiB are written', 'file system, ranks, bytes', 1, '%'),
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
    ('files, short blocks written together', 'files_together_write', 8, 4096, 'at least', 1.5),
    ('files, short blocks read together', 'files_together_read', 8, 4096, 'at least', 1.5),
    ('start of a hello world', 'start', 0, 1 << 20, 'at most', 0.5),
)
# A figure that must not depend on the length of the queue: ours beside ours with the shortest one.
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
        self.near = {}  # key -> has_near
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

    def has_near(self, key):
        """Whether all who have figures of this row have near ones, so that like stands beside like."""
        if key not in self.near:
            self.near[key] = all(any(self.is_near(r) for r in rounds)
                                 for (_, other), rounds in self.rounds.items() if other == key)
        return self.near[key]

    def get(self, mpi, key):
        """(value, mark)"""
        rounds = self.rounds.get((mpi, key))
        if not rounds:
            return None, ''
        if self.has_near(key):
            return statistics.median(r['median'] for r in rounds if self.is_near(r)), ''
        return statistics.median(r['median'] for r in rounds), '*'

    def line(self, key):
        """The time of a cache line in the rounds of this row."""
        lines = [r['cacheline'] for (_, other), rounds in self.rounds.items() if other == key
                 for r in rounds if r.get('cacheline')]
        return statistics.median(lines) if lines else None

    def against(self, key):
        """(ours / the better of the others, that one's name, mark, the bare machine's / the same or None); None when one is
        missing."""
        ours, mark = self.get(OURS, key)
        others = [(*self.get(peer, key), peer) for peer in PEERS]
        others = [other for other in others if other[0]]
        if ours is None or not others:
            return None
        rises = TITLES[key[0]][3].endswith('/s')
        value, other_mark, peer = max(others) if rises else min(others)
        bare, _ = self.get(BARE, key)
        return ours / value, peer, mark or other_mark, bare / value if bare else None


def row_label(key):
    test, variant, ranks, size = key
    if test in ('ring', 'barrier', 'start'):
        return f'{ranks}{variant}'
    if test == 'barriers':
        return f'{ranks}, {variant}'
    if test in ('collective', 'crowded'):
        return f'{ranks}, {variant}, {size_text(size)}'
    if test.startswith('files_'):
        return f'{variant}, {ranks}, {size_text(size)}'
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


class Target:
    """The targets of some rows. A row is (its name, ratio, mark, the ratio of the bare machine or None)."""

    def __init__(self, what, bound, limit, than, rows):
        self.what, self.bound, self.limit, self.than, self.rows = what, bound, limit, than, rows

    def is_met(self, ratio):
        return ratio <= self.limit if self.bound == 'at most' else ratio >= self.limit

    def is_at_floor(self, ratio, bare):
        """Whether the target leaves next to nothing over the bare machine."""
        if bare is None:
            return False
        if self.bound == 'at most':
            return bare * ABOVE_BARE > self.limit and bare < ratio * ABOVE_BARE
        return bare / ABOVE_BARE < self.limit and bare > ratio / ABOVE_BARE

    def missed(self):
        return [row for row in self.rows if not self.is_met(row[1])]

    def verdict(self):
        missed = self.missed()
        if not missed:
            return 'met'
        return 'at the floor' if all(self.is_at_floor(row[1], row[3]) for row in missed) else 'MISSED'

    def show(self):
        """A line, and one for each row that is missed."""
        wanted = f'{self.bound} {self.limit:.1f} x'
        mark = ' *' if any(row[2] for row in self.rows) else ''
        print(f'{self.what:<40} {wanted:>15} {span([row[1] for row in self.rows]):>16}  {self.than:<22} '
              f'{self.verdict()}{mark}')
        for name, ratio, _, bare in self.missed():
            beside = '' if bare is None else f'bare {bare:.2f}' + (
                ', the floor' if self.is_at_floor(ratio, bare) else '')
            print(f'{name:>40} {"":>15} {ratio:>16.2f}  {beside}'.rstrip())


def beside_messages(figures):
    """Our barrier beside the faster one of messages of the same run."""
    found = []
    for key in figures.rows('barriers'):
        ours, mark = figures.get(OURS, key)
        wide = WIDE if key[1].endswith(WIDE) else ''
        shapes = [figures.get(OURS, (key[0], shape + wide, *key[2:])) for shape in MESSAGES]
        messages, other = min((one for one in shapes if one[0]), default=(None, ''))
        if not key[1].startswith('messages') and ours and messages:
            found.append((row_label(key), ours / messages, mark or other, None))
    if found:
        yield Target('barrier beside messages', 'at most', 0.6, 'itself by messages', found)


def beside_others(figures, titles, target, keys):
    """The target of the rows of these keys, which have as many ranks; None: nothing to judge."""
    what, _, _, _, bound, limit = target
    found = [(key, figures.against(key)) for key in keys]
    found = [(key, one) for key, one in found if one]
    if not found:
        return None
    wide, ranks = keys[0][1].endswith(WIDE), keys[0][2]
    names = dict.fromkeys(titles[one[1]] for _, one in found)
    return Target((what if ranks == 2 else f'{what}, {ranks} ranks') + (WIDE if wide else ''), bound, limit,
                  ', '.join(names), [(row_label(key), one[0], one[2], one[3]) for key, one in found])


def beside_shortest(figures, what, test, limit):
    """The target that ours does not grow with its queue; None: nothing to judge."""
    rows = [(key, *figures.get(OURS, key)) for key in figures.rows(test)]
    rows = [row for row in rows if row[1]]
    if len(rows) < 2:
        return None
    first = rows[0][1]
    return Target(f'{what}, up to {rows[-1][0][3]:,} entries', 'at most', limit,
                  f'itself with {rows[0][0][3]:,}',
                  [(row_label(key), value / first, mark or rows[0][2], None) for key, value, mark in rows[1:]])


def targets(figures, titles):
    """Those that can be judged, and maybe None."""
    for target in TARGETS:
        keys = [key for key in figures.rows(target[1]) if target[2] <= key[3] <= target[3]]
        for group in sorted({(key[1].endswith(WIDE), key[2]) for key in keys}):
            yield beside_others(figures, titles, target,
                                [key for key in keys if (key[1].endswith(WIDE), key[2]) == group])
    yield from beside_messages(figures)
    for what, test, limit in FLAT:
        yield beside_shortest(figures, what, test, limit)


def print_targets(figures, titles):
    found = [target for target in targets(figures, titles) if target]
    if not found:
        return
    print(f'\n== targets: {titles[OURS]} beside the better of the others, row by row, and the rows that miss them')
    print(f'{"what":<40} {"target":>15} {"ratio":>16}  {"better one":<22} verdict')
    for target in found:
        target.show()


def print_all(results, titles):
    figures = Figures(results)
    for test in TITLES:
        print_test(test, figures, titles)
    if figures.best_line:
        print(f'\na cache line took {figures.best_line:.0f} ns in the best round; rounds with more '
              f'than {NEAR * figures.best_line:.0f} ns are left out, * where none is left')
    if OURS in titles:
        print_targets(figures, titles)
