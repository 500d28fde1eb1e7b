# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints which of Directed Point's targets are met over a link.

Usage: dp_links.py NAL LINK.json...  Each file is what dp_bench has written on the link of that name. The exit status is
2 where a target is missed, 1 where there is nothing to judge, else 0.
"""
import json
import pathlib
import sys

from links import allowed
from targets import print_targets, status

LONG = 100000  # bytes: what is shorter is a packet or a few
PACKETS = ['1500', '4096', '16384', '65536']
FORMULAS = ['network', 'receiver']


class Link:
    """The figures of one link."""

    def __init__(self, path):
        self.name = pathlib.Path(path).stem
        with open(path, encoding='utf-8') as file:
            results = json.load(file)['results']
        self.values = {(r['test'], r['variant'], r['size']): r['value'] for r in results}

    def sizes(self, packet):
        return sorted(size for test, variant, size in self.values
                      if (test, variant) == ('message', packet) and size >= LONG)

    def nearest(self, packet, size):
        """The formula that is nearer to what was measured, and what it says of that."""
        measured = self.values['message', packet, size]
        parts = {name: self.values[f'predicted, {name}', packet, size] / measured for name in FORMULAS}
        return min(parts.items(), key=lambda part: abs(part[1] - 1))

    def targets(self, nal):
        """As targets.py wants them."""
        for packet in PACKETS:
            for size in self.sizes(packet):
                name, part = self.nearest(packet, size)
                off = 100 * abs(part - 1)
                yield self.name, f'{size} bytes by {packet}: off by, %: {name} formula', off, 15, 'at most', 1
        rate = allowed(self.name, nal)
        for (test, variant, size), value in sorted(self.values.items()):
            if test == 'bandwidth' and size == 65536 and self.name == '100M':
                yield self.name, f'{variant}, Mbit/s: allowed', 8 * value, rate, 'at least', 0.97


def main(nal, paths):
    found = [target for path in paths for target in Link(path).targets(nal)]
    if not found:
        print('dp_links: nothing was measured', file=sys.stderr)
        return 1
    return status(print_targets(iter(found), 'link', '\n'), 0)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2:]))
