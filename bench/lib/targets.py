# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Which targets are met, as links.py and fabrics.py say it.

A target is (where, what, measured, beside, 'at least' or 'at most', limit): the ratio of what was measured to what it
is beside is to be that. `what` ends in the unit and in the name of what it is beside.
"""
DIGITS = {'us': 2, 'GB/s': 3}


def number(value, digits=1):
    return f'{value:.{digits}f}' if value else '-'


def print_targets(targets, where, before=''):
    """Prints those that can be judged, under a head, if there are any; how many are missed."""
    missed, head = 0, f'{before}{where:<9} {"target beside what":<36} {"measured":>10} {"beside":>10} {"ratio":>6}'
    for link, what, value, beside, bound, limit in targets:
        if not value or not beside:
            continue
        if head:
            print(f'{head} {"wanted":>14}')
            head = None
        met = value / beside <= limit if bound == 'at most' else value / beside >= limit
        missed += not met
        digits = DIGITS.get(what.split(':')[0].split()[-1], 1)
        print(f'{link:<9} {what:<36} {number(value, digits):>10} {number(beside, digits):>10} '
              f'{value / beside:>6.2f} {bound + f" {limit:.2f}":>14}  {"met" if met else "MISSED"}')
    return missed


def status(missed, failed):
    """The exit status: 1 where a measurement failed, which it says, else 2 where a target is missed, else 0."""
    if failed:
        print(f'{failed} measurements failed')
        return 1
    return 2 if missed else 0
