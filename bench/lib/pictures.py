# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The pictures of a report: which curves are in them, and what is said about each."""
from gnuplot import INK, Line, Panel, Picture

# Colours that the colour-blind tell apart; the same for a layer in all pictures.
COLOURS = {'postern': '#0072b2', 'mpich': '#d55e00', 'openmpi': '#009e73', 'portals': '#cc79a7'}
MARKS = {'postern': 7, 'mpich': 5, 'openmpi': 9, 'portals': 13}
MPIS = ('postern', 'mpich', 'openmpi')
NETWORKS = {'udp': ('over UDP', '#0072b2', 7), 'ofi': ('over libfabric', '#e69f00', 5)}
FLOOR, DRY, MODEL = '#777777', '#999999', '#e69f00'
OVERLAP_SIZE = 100 << 10
PHASES = ('the work without messages', 'the work with messages', 'the whole cycle, with the wait')

BYTES = [(1, '1'), (8, '8'), (64, '64'), (512, '512'), (4 << 10, '4 KiB'), (32 << 10, '32 KiB'),
         (256 << 10, '256 KiB'), (2 << 20, '2 MiB')]


def tics(places):
    return ', '.join(f'"{text}" {place}' for place, text in places)


def tics_at(lines, most=6):
    """At the places that were measured, or at some of them, from the last on."""
    places = sorted({point[0] for line in lines for point in line.points})
    chosen = places[::-max(1, -(-len(places) // most))]
    return tics((f'{place:.9g}', f'{place:,.0f}' if place >= 100 else f'{place:.3g}')
                for place in chosen)


class Pictures:
    """All pictures that the figures are enough for."""

    def __init__(self, curves, titles):
        self.curves = curves
        self.titles = titles  # name of a layer -> what it is called

    def line(self, who, points, label=None, scale=1.0, **look):
        """A layer's curve; values are multiplied with `scale`."""
        scaled = [(point[0], *(value * scale for value in point[1:])) for point in points]
        return Line(label or self.titles.get(who, who), COLOURS.get(who, FLOOR), scaled,
                    look.pop('mark', MARKS.get(who, 0)), **look)

    def lines(self, axis, test, who, scale=1.0, **more):
        found = [(name, self.curves.along(axis, name, test, **more)) for name in who]
        return [self.line(name, points, scale=scale) for name, points in found if points]

    def level(self, value, points, label):
        """A floor: the same everywhere between the ends of the others."""
        if not value or not points:
            return []
        ends = [min(points), max(points)]
        return [Line(label, FLOOR, [(x, value) for x in ends], 0, '(8,5)', 1.6)]

    def latency(self):
        who = (*MPIS, 'portals')
        variants = {'portals': 'wait'}
        lines = []
        for name in who:
            points = self.curves.along('size', name, 'latency', variants.get(name, '')) or \
                self.curves.along('size', name, 'latency')
            if points:
                lines.append(self.line(name, points, scale=1e-3))
        places = [point[0] for line in lines for point in line.points if 0 < point[0] <= 4096]
        floor = self.curves.one('portals', 'floor', 'cacheline')
        lines += self.level(floor and floor / 1e3, places, 'a cache line')
        return Picture('latency', 'Latency', [Panel(
            'bytes of a message', 'half a round trip', lines, y_time=True, x_tics=tics(BYTES))],
            'Half the time of a ping-pong between two processes on two cores of one machine. The '
            'dashed line is what a cache line alone takes there.')

    def bandwidth(self):
        lines = self.lines('size', 'bandwidth', (*MPIS, 'portals'))
        floors = self.curves.along('size', 'portals', 'floor', 'pipe')
        if floors:
            lines.append(Line('two bare copies in a pipeline', FLOOR, floors, 0, '(8,5)', 1.6))
        attach = self.curves.along('size', 'portals', 'floor', 'attach')
        if attach:
            lines.append(Line('one bare copy (attach)', FLOOR, attach, 0, '(2,4)', 1.6))
        return Picture('bandwidth', 'Bandwidth', [Panel(
            'bytes of a message', 'GB/s', lines, x_tics=tics(BYTES), y_range='[0:*]')],
            'Windows of messages in one direction, 4 MiB under way. The dashed line is what two '
            'processes reach that do nothing but copy through a small buffer, the dotted one '
            'what one process reaches that copies from the other.')

    def rate(self):
        bars, place = [], 0
        ring = self.curves.one('portals', 'floor', 'ring')
        for name in (*MPIS, 'portals'):
            value = self.curves.one(name, 'rate', size=8)
            if value:
                bars.append(Line(self.titles[name], COLOURS[name], [(place, value)], bars=True))
                place += 1
        says = 'Windows of 64 messages of 8 bytes in one direction.'
        if ring:
            says += f' A queue of cache lines between the two processes, without any matching, ' \
                    f'takes {ring:.0f} million a second.'
        return Picture('rate', 'Message rate', [Panel(
            '', 'million messages of 8 bytes a second', bars, x_log=False, y_range='[0:*]',
            x_range=f'[-0.7:{max(place, 1) - 0.3}]')],
            says, 340)

    def overlap(self):
        panels = []
        for name in MPIS:
            dry = self.pww(name, 'work_dry')
            if not dry:
                continue
            panels.append(Panel('µs of work asked for', 'time', [
                Line(PHASES[1], COLOURS[name], self.pww(name, 'work'), MARKS[name]),
                Line(PHASES[0], DRY, dry, 0, '(6,6)', 2.2),
                Line(PHASES[2], COLOURS[name], self.cycles(name), 0, '(2,3)', 1.8)],
                self.titles[name], y_time=True))
            panels[-1].x_tics = tics_at(panels[-1].lines, 3)
        return Picture('overlap', 'Work time with and without messages', panels,
                       'COMB, post-work-wait: 10 messages of 100 KiB arrive while the receiver works. '
                       'Work phase without messages, with messages, and the whole cycle with the '
                       'wait that follows. Where all three lie on each other, messages cost '
                       'nothing.', legend=[
                           Line(PHASES[0], DRY, [], 0, '(6,6)'), Line(PHASES[1], INK, []),
                           Line(PHASES[2], INK, [], 0, '(2,3)')])

    def pww(self, name, value):
        return [tuple(part / 1e3 for part in point) for point in self.curves.along(
            'x', name, 'comb_pww', 'receive', value, OVERLAP_SIZE)]

    def cycles(self, name):
        parts = [self.pww(name, value) for value in ('post', 'work', 'wait')]
        return [(at[0][0], sum(point[1] for point in at)) for at in zip(*parts)]

    def over(self, network, value):
        label, colour, mark = NETWORKS[network]
        for both, dash in (('', ''), (', both cores', '(6,4)')):
            points = [(p[0] / 1e3, *p[1:]) for p in self.curves.along(
                'x', 'postern', 'comb_pww', f'receive over {network}{both}', value, OVERLAP_SIZE)]
            if points:
                yield Line(label + both, colour, points, mark, dash)

    def networks(self):
        waits, available = ([line for network in NETWORKS for line in self.over(network, value)]
                            for value in ('wait_share', 'availability'))
        return Picture('networks', 'Over networks, with the progress thread', [
            Panel('µs of work', '% of the transfer alone', waits, 'the wait phase', y_log=True,
                  x_tics=tics_at(waits)),
            Panel('µs of work', '%', available, 'availability', y_range='[0:110]',
                  x_tics=tics_at(available))],
            'The same cycles of ours between two processes on this machine that use no shared memory '
            'but UDP or libfabric, with PTL_PROGRESS=thread. Where there are four cores or more '
            'each thread can have one of its own. On two it shares its rank\'s, or, dashed, the receiver '
            'may use the sender\'s core as well, which is idle while nothing is sent.')

    def wait(self):
        lines = [line for line in (self.line(name, [(p[0] / 1e3, *p[1:]) for p in self.curves.along(
            'x', name, 'comb_pww', 'receive', 'wait_share', OVERLAP_SIZE)]) for name in MPIS)
            if line.points]
        available = [line for line in (self.line(name, [
            (p[0] / 1e3, *p[1:]) for p in self.curves.along(
                'x', name, 'comb_pww', 'receive', 'availability', OVERLAP_SIZE)])
            for name in MPIS) if line.points]
        return Picture('wait', 'What is left to do after the work', [
            Panel('µs of work', '% of the transfer alone', lines, 'the wait phase', y_log=True,
                  x_tics=tics_at(lines)),
            Panel('µs of work', '%', available, 'availability', y_range='[0:110]',
                  x_tics=tics_at(available))],
            'The same cycles. Left: how much of the transfer remains when the work is done; a '
            'library that moves data only inside its calls stays near 100 %. Right: time of the '
            'work alone, in per cent of the whole cycle.')

    def availability(self):
        lines = []
        for name in MPIS:
            there = self.curves.along('x', name, 'comb_polling', 'receive', 'availability',
                                      OVERLAP_SIZE)
            moved = self.curves.along('x', name, 'comb_polling', 'receive', 'bandwidth',
                                      OVERLAP_SIZE)
            points = [(b[1], a[1]) for a, b in zip(there, moved)]
            if points:
                lines.append(self.line(name, points))
        return Picture('availability', 'Availability against bandwidth', [Panel(
            'GB/s', 'availability, %', lines, x_log=False, y_range='[0:110]',
            x_range='[0:*]')],
            'COMB, polling: messages of 100 KiB are always under way, and the receiver looks for '
            'them after each piece of work. Along a curve the pieces grow: up and to the right is '
            'better.')

    def matching(self):
        panels = []
        for test, title in (('posted', 'receives posted before'),
                            ('unexpected', 'messages that wait unreceived')):
            lines = self.lines('size', test, MPIS, 1e-3)
            panels.append(Panel('entries in the queue', 'time of a message', lines, title,
                                y_time=True))
        return Picture('matching', 'Matching against queue length', panels,
                       'Half a round trip of 8 bytes while older receives, or older messages, fill '
                       'the queue that it has to get past.')

    def barrier(self):
        lines = self.lines('ranks', 'barrier', MPIS, 1e-3)
        places = sorted({point[0] for line in lines for point in line.points})
        bare = self.curves.along('ranks', 'bare', 'barrier')
        if bare:
            lines.append(self.line('bare', bare, 'a counter and sched_yield', 1e-3, dash='(8,5)',
                                   width=1.6))
        return Picture('barrier', 'Barrier against ranks', [Panel(
            'ranks, on two cores', 'time of an MPI_Barrier', lines, y_time=True,
            x_tics=tics((place, str(place)) for place in places))],
            'Two cores for all ranks: from four on, ranks share a core, and a library that spins '
            'while it waits keeps the others from running. The dashed line is what the scheduler '
            'takes to give each rank its turn.')

    def model(self):
        measured = self.curves.along('size', 'portals', 'model', 'measured')
        predicted = self.curves.along('size', 'portals', 'model', 'predicted')
        lines = [self.line('portals', measured, 'measured', 1e-3),
                 Line('predicted', MODEL, [(p[0], p[1] / 1e3) for p in predicted], 0, '(8,4)')]
        return Picture('model', "Directed Point's cost model", [Panel(
            'bytes of a message', 'one way', [line for line in lines if line.points],
            y_time=True, x_tics=tics(BYTES))],
            'The one-way time of a put, and what the model of Directed Point makes of it from the '
            'parameters of packets of up to 32 KiB: overheads of sender and receiver, gap and '
            'latency.')

    def rwapi(self):
        kinds = (('ping-pong', '#0072b2', 7), ('bidirectional', '#e69f00', 5),
                 ('burst', '#009e73', 9))
        panels = []
        for test, label, scale, log in (('rwapi', 'time of a message', 1e-3, True),
                                        ('rwapi throughput', 'GB/s', 1, False)):
            lines = []
            for kind, colour, mark in kinds:
                points = self.curves.along('size', 'portals', test, kind)
                if points:
                    lines.append(Line(kind, colour, [
                        (p[0], *(v * scale for v in p[1:])) for p in points], mark))
            panels.append(Panel('bytes of a message', label, lines, y_time=log,
                                y_range='[*:*]' if log else '[0:*]', x_tics=tics(BYTES[::2])))
        return Picture('rwapi', "RWAPI's three benchmarks", panels,
                       'Remote writes as puts: ping-pong, ping-pong both ways at once, and a burst '
                       'in one direction. Time and bytes are divided by all messages, whichever '
                       'way they went.')

    def mx(self):
        ways = [('mx', 'udp', 'MX over UDP', '#0072b2', 7), ('mx', 'eth', 'MX over Ethernet', '#cc79a7', 13),
                ('openmpi', 'tcp', f'{self.titles.get("openmpi", "MPI")} over TCP', '#009e73', 9)]
        times, rates = [], []
        for who, way, label, colour, mark in ways:
            points = self.curves.along('size', who, 'mx_latency', way)
            if points:
                times.append(Line(label, colour, [(p[0], *(v / 1e3 for v in p[1:])) for p in points], mark))
                # the longest time is the least rate
                rates.append(Line(label, colour, [
                    (p[0], *(p[0] / v for v in (p[1], p[3], p[2]))) for p in points], mark))
        return Picture('mx', 'MX beside MPI over TCP', [
            Panel('bytes of a message', 'half a round trip', times, y_time=True, x_tics=tics(BYTES[::2])),
            Panel('bytes of a message', 'GB/s', rates, y_range='[0:*]', x_tics=tics(BYTES[::2]))],
            'mx_pingpong between two network namespaces that a virtual link with an MTU of 1500 joins, over '
            'UDP and over raw Ethernet frames, and the same ping-pong of an MPI over TCP there.')

    def rwapi_library(self):
        points = [(p[0], *(p[0] / v for v in (p[1], p[3], p[2])))
                  for p in self.curves.along('size', 'rwapi', 'rwapi_burst')]
        lines = [Line('RWAPI, a notice with each write', '#cc79a7', points, MARKS['portals'])] if points else []
        lines += self.lines('size', 'bandwidth', MPIS)
        nearly = [p for p in points if p[1] >= 0.9 * max(q[1] for q in points)]
        says = 'Bursts of remote writes in one direction, each with its notice, beside windows of MPI messages.'
        if nearly:
            where = nearly[0]
            lines.append(Line('90 % of its most', INK, [(where[0], 0), where[:2]], 0, '(3,3)', 1.6))
            says += f' RWAPI has 90 % of its most at {where[0]:,} bytes.'
        return Picture('rwapi_library', 'RWAPI: throughput against size', [Panel(
            'bytes of a message', 'GB/s', lines, x_tics=tics(BYTES), y_range='[0:*]')], says)

    def dp(self):
        kinds = (('dp message', 'measured', COLOURS['portals'], 13, ''),
                 ('dp predicted, network', 'by the network\'s formula', '#0072b2', 0, '(8,4)'),
                 ('dp predicted, receiver', 'by the receiver\'s formula', MODEL, 0, '(3,3)'))
        panels = []
        for packet, title in (('1500', 'packets of 1500 bytes'), ('65536', 'packets of 64 KiB')):
            lines = []
            for test, label, colour, mark, dash in kinds:
                points = self.curves.along('size', 'dp', test, packet)
                if points:
                    lines.append(Line(label, colour, [(p[0], *(v / 1e3 for v in p[1:])) for p in points],
                                      mark, dash))
            panels.append(Panel('bytes of a message', 'one way', lines, title, y_time=True))
        return Picture('dp', 'Directed Point: predicted and measured', panels,
                       'The one-way time of long messages in packets, and what both formulas of the cost model '
                       'make of it from the parameters of a single packet: one where the network is the limit, '
                       'one where the receiver is.')

    def all(self):
        """Those that have something to show."""
        made = [make() for make in (self.latency, self.bandwidth, self.rate, self.overlap, self.wait,
                                    self.networks, self.availability, self.matching, self.barrier, self.model,
                                    self.rwapi, self.mx, self.rwapi_library, self.dp)]
        return [picture for picture in made
                if any(line.points for panel in picture.panels for line in panel.lines)]
