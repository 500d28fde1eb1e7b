#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Counts the test cases of a `meson test` run.

Usage: summary.py BUILD_DIR

Reads meson-logs/testlog.json of the build directory. A test that speaks TAP counts once for each
of its cases, any other test counts once. A program that dies, times out, or reports fewer cases
than its plan counts one failure more than its cases show. Failures are printed with their output,
then how long each suite and the slowest programs took;
the last line is "N passed, N failed", with ", N skipped" if there are any. The exit status is 0
only if something passed and nothing failed.
"""
import json
import pathlib
import re
import sys

CASE = re.compile(r'^(not )?ok\b\s*\d*\s*(?:-\s*)?(.*?)(?:\s*#\s*(skip|todo)\b(.*))?$', re.IGNORECASE)
PLAN = re.compile(r'^1\.\.(\d+)\s*(?:#\s*skip\b(.*))?', re.IGNORECASE)
SLOWEST = 10
SHOWN = 60  # lines of a failed test's output shown, from the start and from the end


class Test:
    """One program of the run: its cases sorted by outcome."""

    def __init__(self, record):
        self.record = record
        self.name = record['name']
        self.passed = []
        self.failed = []
        self.skipped = []
        self.read_output((record.get('stdout') or '').splitlines())
        self.read_result(record['result'])

    def read_output(self, lines):
        planned = None
        for line in lines:
            plan = PLAN.match(line)
            case = CASE.match(line)
            if plan:
                planned = int(plan.group(1))
                if planned == 0:
                    self.skipped.append(('all cases', (plan.group(2) or '').strip()))
            elif case:
                self.read_case(*case.groups())
        seen = len(self.passed) + len(self.failed) + len(self.skipped)
        if planned and seen < planned:
            self.failed.append(f'{planned - seen} of {planned} planned cases never ran')

    def read_case(self, failed, name, directive, reason):
        directive = (directive or '').lower()
        if directive == 'skip':
            self.skipped.append((name, reason.strip()))
        elif failed and directive != 'todo':
            self.failed.append(name)
        else:
            self.passed.append(name)

    def read_result(self, result):
        empty = not (self.passed or self.failed or self.skipped)
        if result in ('OK', 'EXPECTEDFAIL'):
            if empty:
                self.passed.append(self.name)
        elif result == 'SKIP':
            if empty:
                self.skipped.append((self.name, ''))
        elif result == 'FAIL' and self.record.get('returncode') == 0 and self.skipped:
            pass  # cmocka says "not ok # SKIP", which meson takes for a failure
        elif not self.failed:
            self.failed.append(f'the program itself: {result.lower()}, '
                               f'exit status {self.record.get("returncode")}')

    def show_failures(self):
        print(f'\n{self.name}: {len(self.failed)} failed, {self.record["result"].lower()}')
        for case in self.failed:
            print(f'  not ok: {case}')
        output = (self.record.get('stdout') or '').splitlines()
        output += (self.record.get('stderr') or '').splitlines()
        output = [line for line in output if not line.startswith('ok ')]
        if len(output) > 2 * SHOWN:
            cut = f'... {len(output) - 2 * SHOWN} lines ...'
            output = output[:SHOWN] + [cut] + output[-SHOWN:]
        for line in output:
            print(f'    {line}')


def show_times(tests):
    """The time of each suite, where a program counts for the first of its own, and the slowest programs."""
    suites = {}
    times = []
    for test in tests:
        suite, _, name = test.name.rpartition(' / ')
        suite = suite.rpartition(':')[2].partition('+')[0] or 'other'
        seconds = test.record.get('duration', 0)
        programs, before = suites.get(suite, (0, 0))
        suites[suite] = programs + 1, before + seconds
        times.append((seconds, name))
    times.sort(reverse=True)
    print('suites: ' + ', '.join(f'{suite} {programs} in {seconds:.0f} s'
                                 for suite, (programs, seconds) in sorted(suites.items())))
    print('slowest: ' + ', '.join(f'{name} {seconds:.0f} s' for seconds, name in times[:SLOWEST]))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        print(__doc__.strip())
        return 0 if sys.argv[1:] == ['--help'] else 2
    log = pathlib.Path(sys.argv[1], 'meson-logs', 'testlog.json')
    with log.open(encoding='utf-8', errors='replace') as lines:
        tests = [Test(json.loads(line)) for line in lines]

    for test in tests:
        for case, reason in test.skipped:
            print(f'skipped: {test.name}: {case}' + (f' ({reason})' if reason else ''))
    for test in tests:
        if test.failed:
            test.show_failures()

    show_times(tests)
    passed = sum(len(test.passed) for test in tests)
    failed = sum(len(test.failed) for test in tests)
    skipped = sum(len(test.skipped) for test in tests)
    print(f'{passed} passed, {failed} failed' + (f', {skipped} skipped' if skipped else ''))
    return 0 if passed and not failed else 1


if __name__ == '__main__':
    sys.exit(main())
