# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""MX, RWAPI and Directed Point in a report: their own benchmarks, and an MPI beside where that says something."""
import json
import pathlib

LIB = pathlib.Path(__file__).resolve().parent
WIRE = ('1500', 'MTU 1500', ['mx'])
K, M = 1 << 10, 1 << 20
MX_SIZES = [1, 64, 512, 2 * K, 8 * K, 32 * K, 64 * K, 256 * K, M]
PARTS = ['mx', 'rwapi', 'dp']


def figure(test, variant, size, ns):
    return {'test': test, 'variant': variant, 'size': size, 'ranks': 2, 'unit': 'ns',
            'median': ns, 'p99': ns, 'best': ns}


class Older:
    """Of a report: `pairs` is its mpi_compare, `wants` says whether a part is asked for."""

    def __init__(self, pairs, folder, options, wants):
        self.pairs = pairs
        self.folder = pathlib.Path(folder)
        self.quick = options.quick
        self.wants = wants
        self.programs = {
            'mx': pairs.find_program('tools/mx/mx_pingpong', 'bin/mx_pingpong'),
            'rwapi': pairs.find_program('bench/rwapi_bench/rwapi_bench', 'bin/rwapi_bench'),
            'dp': pairs.find_program('bench/dp/dp_bench', 'bin/dp_bench'),
        }

    def sizes(self):
        return MX_SIZES[::4] if self.quick else MX_SIZES

    def run_mx(self, nal):
        """A ping-pong of MX between two hosts that a virtual link joins."""
        lengths = self.folder / 'mx_lengths'
        lengths.write_text(''.join(f'{size}\n' for size in self.sizes()), encoding='ascii')
        output = self.pairs.run(
            [str(LIB / 'wire'), WIRE[0], 'postern', self.pairs.mpis['postern'].mpiexec, str(LIB / 'mx_pair'),
             self.programs['mx'], '-L', str(lengths), '-N', '100' if self.quick else '1000'], True,
            {**self.pairs.libraries(), 'PTL_NAL': nal}).output
        for line in output.splitlines():
            words = line.split()
            if len(words) == 3 and words[0].isdigit():
                yield figure('mx_latency', nal, int(words[0]), float(words[1]) * 1e3)

    def run_mpi(self):
        """The same by an MPI over TCP."""
        step = ('network', 'pair', 2, [WIRE, 'latency', *self.sizes()])
        for one in self.pairs.run_network(self.pairs.mpis['openmpi'], '', step):
            yield dict(one, variant='tcp')

    def run_rwapi(self):
        """Bursts, a notice with each write."""
        report = self.folder / 'rwapi.json'
        self.pairs.launch(self.pairs.mpis['postern'], 2, [
            self.programs['rwapi'], '--json', str(report), *(['--quick'] if self.quick else []), 'burst'],
            self.pairs.libraries())
        for one in json.loads(report.read_text(encoding='utf-8'))['results']:
            if one['kind'] == 'write':
                yield figure('rwapi_burst', '', one['bytes'], one['ns'])

    def run_dp(self):
        """The model, and what it foretells."""
        report = self.folder / 'dp.json'
        self.pairs.run([self.programs['dp'], '--json', str(report),
                        *(['--quick', '--rounds', '50'] if self.quick else []), 'model'], False,
                       self.pairs.libraries())
        for one in json.loads(report.read_text(encoding='utf-8'))['results']:
            if one['test'] in ('message', 'predicted, network', 'predicted, receiver'):
                yield figure(f'dp {one["test"]}', one['variant'], one['size'], one['value'])

    def kinds(self):
        """(part, who, what it is, function)"""
        if 'postern' not in self.pairs.mpis:
            return
        if self.programs['mx'] and not self.pairs.no_network:
            for nal in self.pairs.networks():
                yield 'mx', 'mx', f'MX over {nal}', lambda n=nal: self.run_mx(n)
            if 'openmpi' in self.pairs.mpis:
                yield 'mx', 'openmpi', 'pair beside MX', self.run_mpi
        if self.programs['rwapi']:
            yield 'rwapi', 'rwapi', 'RWAPI', self.run_rwapi
        if self.programs['dp']:
            yield 'dp', 'dp', 'Directed Point', self.run_dp

    def runs(self, rounds):
        for number in range(rounds):
            for part, who, text, run in self.kinds():
                if self.wants(part):
                    yield (number, who, text, text, run)
