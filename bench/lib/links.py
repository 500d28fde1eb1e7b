# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Prints what bench/links has measured, and which targets are met.

Usage: links.py FIGURES. A line of FIGURES is LINK WAY WHAT VALUE, and each round has one; VALUE is - where it was not to
be had. The exit status is 1 where a value is missing, else 2 where a target is missed, else 0.

  stream               Mbit/s of MPI's messages of 1 MiB
  trip                 half a round trip of MPI's 64 bytes, us
  portals, bare        Mbit/s of 1 MiB by Portals, and of bare sockets between the same two processes
  portals-trip, bare-trip  64 bytes by these, us
"""
import statistics
import sys

from targets import number, print_targets, status

RATES = {'100M': 100, '1G': 1000, 'lossy': 1000, 'lossy2': 1000, 'lossy10': 1000}
OURS = ('udp', 'eth')
NAMES = {'openmpi': 'Open MPI', 'mpich': 'MPICH'}
BARE = {'udp': 'bare UDP', 'eth': 'bare frames'}
# The share of the rate that packets of full length leave: 1500 bytes of 1538 on the wire, with 28 of IP and
# UDP or 12 of the eth link's own, and 56 of the datagram protocol's; TCP with its time stamps, 52.
FRAME, PAYLOAD, TCP_PAYLOAD = 1538, {'udp': 1416, 'eth': 1432}, 1448


class Figures:
    def __init__(self, lines):
        self.values = {}  # in the order of the lines
        self.missing = 0
        for line in lines:
            link, way, what, value = line.split()
            found = self.values.setdefault((link, way, what), [])
            if value == '-':
                self.missing += 1
            else:
                found.append(float(value))

    def get(self, link, way, what):
        found = self.values.get((link, way, what))
        return statistics.median(found) if found else None

    def links(self):
        return list(dict.fromkeys(link for link, _, _ in self.values))

    def ways(self, link):
        return list(dict.fromkeys(way for other, way, _ in self.values if other == link))


def allowed(link, way):
    rate = RATES.get(link)
    return rate and rate * PAYLOAD.get(way, TCP_PAYLOAD) / FRAME


def times(value, other):
    return f'{value / other:.2f}' if value and other else '-'


def print_rows(figures):
    print(f'{"link":<9} {"way":<11} {"Mbit/s":>10} {"of allowed":>11} {"x Open MPI":>11} {"x MPICH":>9} '
          f'{"64 bytes/us":>12}')
    for link in figures.links():
        peers = [figures.get(link, peer, 'stream') for peer in NAMES]
        rows = [(way, way, 'stream', 'trip') for way in figures.ways(link)]
        rows += [(BARE[way], way, 'bare', 'bare-trip') for way in figures.ways(link) if way in OURS]
        for name, way, stream, trip in rows:
            if (link, way, stream) not in figures.values:
                continue
            rate, full = figures.get(link, way, stream), allowed(link, way)
            share = f'{100 * rate / full:.1f}%' if rate and full else '-'
            print(f'{link:<9} {name:<11} {number(rate) if rate else "failed":>10} {share:>11} '
                  f'{times(rate, peers[0]):>11} {times(rate, peers[1]):>9} '
                  f'{number(figures.get(link, way, trip), 2):>12}')


def targets(figures):
    """(link, what, measured, beside, at least or at most, limit) of all that can be judged."""
    for link in figures.links():
        def of(way, what, link=link):
            return figures.get(link, way, what)
        tcp = of('openmpi', 'stream')
        if ('udp' in figures.ways(link)) and link.startswith('veth'):
            yield link, 'udp, 64 bytes, us: bare UDP', of('udp', 'portals-trip'), of('udp', 'bare-trip'), 'at most', 1.25
            yield (link, "udp, 64 bytes, us: Open MPI's TCP", of('udp', 'trip'), of('openmpi', 'trip'),
                   'at most', 0.8)
            yield link, 'udp, 1 MiB, Mbit/s: bare UDP', of('udp', 'portals'), of('udp', 'bare'), 'at least', 0.9
            yield link, "udp, stream, Mbit/s: Open MPI's TCP", of('udp', 'stream'), tcp, 'at least', 1
        for way in OURS:
            rate = of(way, 'stream')
            if link.startswith('lossy'):
                yield link, f"{way}, stream, Mbit/s: Open MPI's TCP", rate, tcp, 'at least', 3
            elif link in RATES:
                yield link, f'{way}, stream, Mbit/s: allowed', rate, allowed(link, way), 'at least', 0.97
            elif way == 'eth':
                yield link, "eth, stream, Mbit/s: Open MPI's TCP", rate, tcp, 'at least', 1.2


def main(path):
    with open(path, encoding='ascii') as lines:
        figures = Figures(lines)
    print_rows(figures)
    return status(print_targets(targets(figures), 'link', '\n'), figures.missing)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
