# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The common part of the comparing programs: options, compiling with every MPI, running on the two cores,
leaving out what fails, and the JSON of FORMAT.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import sys
import time

import jobs
import mpis

COMPILE_SECONDS = 120
BENCH = pathlib.Path(__file__).resolve().parent.parent
PLAIN = ['ptlperf/clock.c', 'ptlperf/stats.c']  # need no MPI
PEERS = [name for name in mpis.KINDS if name != 'postern']


def siblings(cpu):
    """The hardware threads of a core."""
    path = f'/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list'
    try:
        text = pathlib.Path(path).read_text(encoding='ascii')
    except OSError:
        return {cpu}
    found = {cpu}
    for part in text.strip().split(','):
        low, _, high = part.partition('-')
        found.update(range(int(low), int(high or low) + 1))
    return found


def choose_cores():
    """Two hardware threads that are not of one core, if there are such; else what there is."""
    cores = all_cores()
    return cores[:2] if len(cores) > 1 else sorted(os.sched_getaffinity(0))[:2]


def all_cores():
    """One hardware thread of each core."""
    found = []
    for cpu in sorted(os.sched_getaffinity(0)):
        if not siblings(cpu) & set(found):
            found.append(cpu)
    return found


def processor():
    """Its name, as far as the kernel tells."""
    with open('/proc/cpuinfo', encoding='utf-8', errors='replace') as file:
        for line in file:
            if line.startswith(('model name', 'Model')):
                return line.partition(':')[2].strip()
    return os.uname().machine


def clear_line():
    if sys.stdout.isatty():
        print('\r\033[K', end='', flush=True)


class Session:
    """The programs of each MPI, and what came of running them."""

    def __init__(self, program, sources, options, folder):
        """sources: name of a program -> its sources, as paths below bench/."""
        self.program = program
        self.sources = sources
        self.options = options
        self.folder = pathlib.Path(folder)
        self.cores = choose_cores()
        self.load = os.getloadavg()[0]
        self.figures = []
        self.left_out = {}  # (mpi, program, or what it was to do) -> why
        self.failures = []  # of runs, those that went well when repeated included
        self.env = dict(os.environ, TMPDIR=folder)
        self.mpis = mpis.find(options.prefix, options.mpi or mpis.KINDS, folder, self.complain)
        for extra in options.launcher_options:
            name, _, words = extra.partition('=')
            if name in self.mpis:
                self.mpis[name].options += words.split()

    def complain(self, text):
        clear_line()
        print(f'{self.program}: {text}', file=sys.stderr, flush=True)

    def leave_out(self, name, what, why):
        self.left_out[name, what] = why
        self.complain(f'{name}, {what}: {why}; leaving it out')

    def is_left_out(self, run):
        """`run`: as run_all has them."""
        _, name, program, text, _ = run
        return (name, program) in self.left_out or (name, text) in self.left_out

    # -- compiling ------------------------------------------------------------------------------

    def object_of(self, owner, mpicc, source):
        """Compiles a source once for each owner: an MPI, or none of them."""
        output = self.folder / f'{owner}-{source.replace("/", "-")}.o'
        if not output.exists():
            jobs.run([mpicc, '-O2', '-std=gnu17', '-c', '-o', str(output), str(BENCH / source)],
                     COMPILE_SECONDS, self.folder, self.env)
        return str(output)

    def build(self, mpi, program):
        objects = [self.object_of('plain' if source in PLAIN else mpi.name, mpi.mpicc, source)
                   for source in self.sources[program]]
        jobs.run([mpi.mpicc, '-o', str(self.path_of(mpi, program)), *objects],
                 COMPILE_SECONDS, self.folder, self.env)

    def path_of(self, mpi, program):
        return self.folder / f'{program}-{mpi.name}'

    def build_all(self, programs):
        for mpi in self.mpis.values():
            for program in programs:
                try:
                    self.build(mpi, program)
                except jobs.Failure as reason:
                    self.leave_out(mpi.name, program, f'does not compile: {reason}')
        any_mpicc = next(iter(self.mpis.values())).mpicc
        for floor in 'cacheline', 'turns', 'copies':
            objects = [self.object_of('plain', any_mpicc, source)
                       for source in [f'lib/{floor}.c', *PLAIN]]
            jobs.run([any_mpicc, '-o', str(self.folder / floor), *objects], COMPILE_SECONDS,
                     self.folder, self.env)

    # -- running --------------------------------------------------------------------------------

    def run(self, command, bound, env=()):
        """On the two cores; `bound`: each rank on one of them."""
        cores = [str(core) for core in self.cores]
        env = dict(self.env, **dict(env))
        if bound:
            env['MPI_COMPARE_CORES'] = ' '.join(cores)
        return jobs.run(['taskset', '-c', ','.join(cores), *command], self.options.timeout,
                        self.folder, env)

    def launch(self, mpi, ranks, command, env=()):
        """Runs a command as the ranks of a job, two of them bound to a core each."""
        if ranks <= 2:
            command = [str(BENCH / 'lib' / 'pin'), *command]
        return self.run(mpi.launch(ranks, command), ranks <= 2, env)

    def launch_wide(self, mpi, ranks, command):
        """Runs a command as the ranks of a job that has all cores of the machine; while they are enough each rank is
        bound to one."""
        cores = all_cores()
        if ranks <= len(cores):
            command = [str(BENCH / 'lib' / 'pin'), *command]
        return jobs.run(mpi.launch(ranks, command, len(cores)), self.options.timeout, self.folder,
                        dict(self.env, MPI_COMPARE_CORES=' '.join(map(str, cores))))

    @staticmethod
    def spare_cores():
        """Has each of two ranks a second core for whoever moves its messages?"""
        return len(os.sched_getaffinity(0)) >= 4

    def launch_over(self, mpi, command, env, both_cores=False):
        """Two ranks over a network, with cores to spare if there are such; else bound as always, or rank 0 may use
        the core of rank 1 as well."""
        if self.spare_cores():
            return jobs.run(mpi.launch(2, command), self.options.timeout, self.folder,
                            dict(self.env, **env))
        if both_cores:
            env = dict(env, MPI_COMPARE_BOTH='0')
        return self.launch(mpi, 2, command, env)

    def cache_line(self):
        if len(self.cores) < 2:
            return None
        command = [str(self.folder / 'cacheline'), *map(str, self.cores)]
        return float(jobs.run(command, 20, self.folder).output)

    @staticmethod
    def figures_of(run):
        """The result of run(), and why it is not complete; None if it is."""
        found = []
        try:
            for figure in run():  # what came before a failure counts
                found.append(figure)
        except (jobs.Failure, OSError, ValueError, KeyError) as reason:
            return found, str(reason) or repr(reason)
        return found, None

    def one_run(self, number, name, text, run):
        """Adds what run() finds out. A failure is repeated at once, since an MPI may hang once in a thousand
        runs; True if that helped. The result of the first try counts where the second one finds less."""
        figures, why = self.figures_of(run)
        helped = True
        if why:
            self.complain(f'{name}, {text}, round {number + 1}: {why}; trying again')
            again, still = self.figures_of(run)
            helped = not still
            figures = again if helped or len(again) > len(figures) else figures
            self.failures.append({'mpi': name, 'what': text, 'round': number + 1, 'why': why,
                                  'again': still})
        self.figures += [dict(figure, mpi=name, round=number + 1) for figure in figures]
        return helped

    def run_all(self, runs):
        """One after the other; each is (round, name of the MPI, program, what it is, function). A step that
        fails twice in a row is left out from there on, unless it has worked before: then the next round tries
        again."""
        took = {}  # (MPI, what it is) -> seconds of the last one that worked
        for at, (number, name, program, text, run) in enumerate(runs):
            if self.is_left_out(runs[at]):
                continue
            left = [took.get((one[1], one[3])) for one in runs[at:] if not self.is_left_out(one)]
            self.show_progress(f'round {number + 1} of {self.options.rounds}: {text}, {name}',
                               at, len(runs), left, took.values())
            start = time.monotonic()
            if self.one_run(number, name, text, run):
                took[name, text] = time.monotonic() - start
            elif (name, text) not in took:
                self.leave_out(name, text, self.failures[-1]['again'])
        clear_line()

    def show_progress(self, text, done, total, left, took):
        """`left`: seconds of what is to be run, None where that is not known yet."""
        mean = sum(took) / len(took) if took else 0
        seconds = round(sum(mean if one is None else one for one in left))
        if self.options.progress:
            print(f'progress {done} {total} {seconds if took else -1} {text}', file=sys.stderr,
                  flush=True)
        elif sys.stdout.isatty():
            remaining = f'; {seconds // 60}:{seconds % 60:02} left' if took else ''
            clear_line()
            print(f'{text}{remaining} ', end='', flush=True)

    # -- what is said about it ------------------------------------------------------------------

    def print_head(self):
        print(f'cores {", ".join(map(str, self.cores))}; {self.options.rounds} rounds; '
              f'load average {self.load:.1f}'
              + (': others are at work, the figures show them as well' if self.load > 0.5 else ''))
        if len(self.cores) < 2:
            print('there is one core only: the figures show how it is shared')
        for mpi in self.mpis.values():
            print(f'  {mpi.title}: {mpi.mpicc}; '
                  f'{" ".join(mpi.launch("N", ["PROGRAM"]))}')
        sys.stdout.flush()

    def print_left_out(self):
        if self.left_out:
            print('\n== left out')
        for (mpi, what), why in self.left_out.items():
            print(f'{mpi}, {what}: {why}')
        if self.failures:
            print('\n== failed, and repeated')
        for one in self.failures:
            print(f'{one["mpi"]}, {one["what"]}, round {one["round"]}: {one["why"]}; '
                  + (f'again: {one["again"]}' if one['again'] else 'then it went well'))

    def exit_status(self):
        """1 if something is missing, or ours failed even once."""
        ours = [one for one in self.failures if one['again'] or one['mpi'] not in PEERS]
        return 1 if self.left_out or ours or not self.figures else 0

    def describe(self):
        """The document that --json writes."""
        return {
            'format': 1,
            'program': self.program,
            'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'),
            'kernel': ' '.join(os.uname()[i] for i in (0, 2, 4)),
            'cpu': processor(),
            'cores': self.cores,
            'load': self.load,
            'rounds': self.options.rounds,
            'mpis': [{'name': mpi.name, 'title': mpi.title, 'mpicc': mpi.mpicc,
                      'launch': mpi.launch('N', ['PROGRAM'])} for mpi in self.mpis.values()],
            'left_out': [{'mpi': mpi, 'program': what, 'why': why}
                         for (mpi, what), why in self.left_out.items()],
            'failures': self.failures,
            'results': self.figures,
        }

    def write_json(self):
        """One figure per line, so that two files can be looked at side by side."""
        report = self.describe()
        figures = ',\n'.join(json.dumps(figure) for figure in report.pop('results'))
        with open(self.options.json, 'w', encoding='utf-8') as file:
            head = json.dumps(report, indent=1)
            file.write(f'{head[:-2]},\n "results": [\n{figures}\n]}}\n')


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'{text} is not 1 or more')
    return value


def names_in(choices):
    def parse(text):
        names = text.split(',')
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"there is no '{name}'; there are "
                                                 f'{", ".join(choices)}')
        return names
    return parse


def new_parser(program, description):
    """A parser that has the options all comparing programs take."""
    parser = argparse.ArgumentParser(prog=program, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--prefix', type=pathlib.Path, metavar='DIR',
                        help="Postern's build directory, or where it is installed "
                             '(default: build/ beside bench/, if it is there)')
    parser.add_argument('--rounds', type=positive, metavar='N', help='(default: 5; 1 with --quick)')
    parser.add_argument('--mpi', type=names_in(list(mpis.KINDS)), metavar='NAME[,NAME...]',
                        help=f'compare these only: {", ".join(mpis.KINDS)}')
    parser.add_argument('--launcher-options', action='append', default=[],
                        metavar='NAME=OPTIONS', help='for this MPI, such as '
                        '"openmpi=--mca mpi_yield_when_idle 1"')
    parser.add_argument('--timeout', type=positive, default=300, metavar='SECONDS',
                        help='a program that takes longer is left out (default: 300)')
    parser.add_argument('--quick', action='store_true',
                        help='short and few of everything: does it work?')
    parser.add_argument('--json', metavar='FILE', help='write all figures of all rounds there')
    parser.add_argument('--progress', action='store_true', help='say on standard error, for '
                        'programs: "progress DONE TOTAL SECONDS-LEFT WHAT", before each run; -1 '
                        'seconds are not known yet')
    return parser


def parse(parser, arguments):
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else 5)
    build = BENCH.parent / 'build'
    if not options.prefix and build.is_dir():
        options.prefix = build
    if options.prefix:
        options.prefix = options.prefix.resolve()
    return options


def main(program, options, work):
    """Runs work(folder) so that nothing is left behind; the exit status."""
    def guarded(folder):
        try:
            if options.json:  # said now, not after all has been measured
                open(options.json, 'a', encoding='utf-8').close()
            return work(folder)
        except (OSError, jobs.Failure) as reason:
            clear_line()
            print(f'{program}: {reason}', file=sys.stderr, flush=True)
            return 1

    return jobs.run_guarded(program, guarded)
