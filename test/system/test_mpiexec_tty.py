#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""mpiexec on a terminal: what is typed, and job control of a shell.

Usage: test_mpiexec_tty.py MPIEXEC
"""
import os
import pty
import re
import select
import sys
import time

LIMIT = 30  # seconds a case may take


class Terminal:
    """A command on a terminal of its own; what it shows is taken piece by piece."""

    def __init__(self, command):
        self.end = time.monotonic() + LIMIT
        self.shown = ''
        self.taken = 0
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execvp(command[0], command)

    def read(self):
        """Waits for output; False at its end."""
        while time.monotonic() < self.end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    text = os.read(self.fd, 4096)
                except OSError:
                    return False
                self.shown += text.decode(errors='replace')
                return bool(text)
        os.kill(self.pid, 9)
        raise TimeoutError(f'shown so far: {self.shown!r}')

    def expect(self, pattern):
        """Waits until pattern is shown after what was expected before."""
        while not (match := re.search(pattern, self.shown[self.taken:])):
            if not self.read():
                raise EOFError(f'no {pattern!r} in {self.shown!r}')
        self.taken += match.end()

    def type(self, text):
        os.write(self.fd, text.encode())

    def await_job(self):
        """Waits until the shell has given its terminal to a job, which it does after it says so."""
        while os.tcgetpgrp(self.fd) == self.pid:
            if time.monotonic() > self.end:
                raise ValueError('the shell keeps the terminal')
            time.sleep(0.01)

    def status(self):
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def equal(found, expected):
    if found != expected:
        raise ValueError(f'{found!r} in place of {expected!r}')


def what_is_typed_goes_to_rank_0(mpiexec):
    terminal = Terminal([mpiexec, '-n', '2', 'sh', '-c',
                         'while read -r x; do echo $PMI_RANK:$x; done; echo end $PMI_RANK'])
    terminal.expect('end 1')
    terminal.type('one\n')
    terminal.expect('0:one')
    terminal.type('two\n')
    terminal.expect('0:two')
    terminal.type('\x04')
    terminal.expect('end 0')
    equal(terminal.status(), 0)


def the_interrupt_key_ends_the_job(mpiexec):
    terminal = Terminal([mpiexec, '-n', '2', 'sh', '-c', 'echo up $PMI_RANK; exec sleep 60'])
    terminal.expect('up [01]\r\nup [01]')
    terminal.type('\x03')
    equal(terminal.status(), 130)


def shell(mpiexec):
    terminal = Terminal(['env', 'PS1=READY ', 'bash', '--norc', '-i'])
    terminal.expect('READY ')
    terminal.type(f'mpiexec={mpiexec}\n')
    terminal.expect('READY ')
    return terminal


def a_shell_stops_and_continues_the_job(mpiexec):
    terminal = shell(mpiexec)
    terminal.type('$mpiexec -n 2 sh -c "echo up \\$PMI_RANK; exec sleep 60"\n')
    terminal.expect('up [01]\r\nup [01]')
    terminal.type('\x1a')
    terminal.expect('Stopped')
    terminal.expect('READY ')
    terminal.type('until [ $(pgrep -r T -P $(jobs -p) | wc -l) = 2 ]; do sleep 0.02; done; fg\n')
    terminal.expect('exec sleep 60"\r')
    terminal.await_job()
    terminal.type('\x03')
    terminal.expect('READY ')
    terminal.type('echo status $?\n')
    terminal.expect('status 130')
    terminal.type('exit\n')
    terminal.status()


def a_job_in_the_background_reads_when_it_is_fetched(mpiexec):
    terminal = shell(mpiexec)
    terminal.type('$mpiexec sh -c "echo up; cat; echo end" &\n')
    terminal.expect(r'\bup\r')
    terminal.type('echo sh\'\'ell $(jobs -r | wc -l)\n')  # the shell, not the job, reads this
    terminal.expect('shell 1')
    terminal.type('fg\n')
    terminal.expect('echo end"\r')
    terminal.type('typed\n')
    terminal.expect('typed\r\ntyped\r')  # the terminal's echo, and cat's
    terminal.type('\x04')
    terminal.expect(r'\bend\r')
    terminal.expect('READY ')
    terminal.type('echo status $?; exit\n')
    terminal.expect('status 0')
    terminal.status()


CASES = [
    what_is_typed_goes_to_rank_0,
    the_interrupt_key_ends_the_job,
    a_shell_stops_and_continues_the_job,
    a_job_in_the_background_reads_when_it_is_fetched,
]


def main():
    if len(sys.argv) != 2 or sys.argv[1] == '--help':
        print(__doc__.strip())
        return 0 if sys.argv[1:] == ['--help'] else 2
    failed = 0
    print(f'1..{len(CASES)}')
    for number, case in enumerate(CASES, 1):
        try:
            case(os.path.abspath(sys.argv[1]))
            print(f'ok {number} - {case.__name__}')
        except (OSError, EOFError, ValueError) as error:
            failed += 1
            print(f'not ok {number} - {case.__name__}\n# {error}')
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
