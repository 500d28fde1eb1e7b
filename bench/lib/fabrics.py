# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints what bench/fabric or bench/verbs_compare has measured, and which targets are met.

Usage: fabrics.py FIGURES. A line of FIGURES is WHERE TOOL BYTES OURS ITS, and each round has one: where, a provider or a
device; the tool that ours is beside; a value is - where it was not to be had. Of each the best of all rounds counts. The
exit status is 1 where a value is missing, else 2 where a target is missed, else 0.
"""
import sys

import targets

# unit, which is the best, and the target
TOOLS = {
    'fi_pingpong': ('us', min, 'at most', 1.1),
    'ib_send_lat': ('us', min, 'at most', 1.3),
    'ib_write_bw': ('GB/s', max, 'at least', 0.9),
}


def best(values, of):
    found = [float(value) for value in values if value != '-']
    return of(found) if found else None


def rows(rounds):
    for (where, tool, size), values in rounds.items():
        unit, of, bound, limit = TOOLS[tool]
        ours, its = (best(side, of) for side in zip(*values))
        yield where, f'{size} bytes, {unit}: {tool}', ours, its, bound, limit


def main(path):
    rounds, failed = {}, 0
    with open(path, encoding='ascii') as lines:
        for line in lines:
            where, tool, size, *values = line.split()
            rounds.setdefault((where, tool, size), []).append(values)
            failed += values.count('-')
    return targets.status(targets.print_targets(rows(rounds), 'fabric'), failed)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
