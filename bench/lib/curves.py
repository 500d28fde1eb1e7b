# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Figures of several rounds as curves: what is the same but for the round becomes one point, the median, with
the least and the most beside it. Rounds in which the two cores were far apart are set aside where there are
others, as in tables.py.
"""
import statistics

import tables


def is_better_more(unit):
    return unit == '%' or unit.endswith('/s')


def key_of(figure):
    """The subject of a figure."""
    return (figure['mpi'], figure['test'], figure.get('variant', ''), figure.get('ranks', 2),
            figure['size'], figure.get('x', 0))


class Curves:
    """All figures of a run."""

    def __init__(self, figures):
        lines = [figure['cacheline'] for figure in figures if figure.get('cacheline')]
        self.best_line = min(lines, default=0)
        self.rounds = {}
        for figure in figures:
            self.rounds.setdefault(key_of(figure), []).append(figure)

    def near(self, figures):
        """Those of rounds with cores near each other; all of them if there are none."""
        limit = tables.NEAR * self.best_line
        return [f for f in figures if f.get('cacheline_worst', 0) <= limit] or figures

    def values(self, key, name='median'):
        """One for each round that counts."""
        figures = self.near(self.rounds.get(key, []))
        found = [f.get('values', {}).get(name) if name != 'median' else f['median']
                 for f in figures]
        return [value for value in found if value is not None]

    def point(self, key, name='median'):
        """(median, least, most), or None."""
        values = self.values(key, name)
        return (statistics.median(values), min(values), max(values)) if values else None

    def along(self, axis, mpi, test, variant='', name='median', size=None):
        """[(x, median, least, most)] over 'size', 'ranks' or 'x'; `size` chooses where it is not the axis."""
        place = {'ranks': 3, 'size': 4, 'x': 5}[axis]
        found = []
        for key in self.rounds:
            if key[:3] == (mpi, test, variant) and (size is None or key[4] == size):
                point = self.point(key, name)
                if point:
                    found.append((key[place], *point))
        return sorted(found)

    def one(self, mpi, test, variant='', size=None):
        """The median of the only point there is, or None."""
        found = self.along('size', mpi, test, variant)
        found = [point for point in found if size is None or point[0] == size]
        return found[0][1] if found else None
