# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Runs commands that leave nothing behind.

Launchers put ranks into process groups and sessions of their own, so that a signal to a group does
not reach them. But orphans become children of a process that has declared itself their reaper. So the program
is two processes, a guard and the worker it starts, both reapers. Whichever of them ends, however that
happens, the other one kills all that descends from it.
"""
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
POLITE_SECONDS = 1.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def prctl(option, value):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), 'prctl')


def parents():
    """pid -> pid of the parent, of every process that is not a zombie."""
    found = {}
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        try:
            with open(f'/proc/{name}/stat', encoding='utf-8', errors='replace') as file:
                state, parent = file.read().rpartition(')')[2].split()[:2]
        except (OSError, ValueError):
            continue  # has ended meanwhile
        if state not in 'ZX':
            found[int(name)] = int(parent)
    return found


def descendants():
    """All processes below this one."""
    children = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [os.getpid()]
    while todo:
        more = children.get(todo.pop(), [])
        found += more
        todo += more
    return found


def reap():
    """Takes note of what has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_descendants():
    """SIGKILL for everything below this process, until nothing is left."""
    while True:
        left = descendants()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        reap()
        if not left:
            return
        time.sleep(0.01)


def interrupted(number, _frame):
    raise SystemExit(128 + number)


def run_guarded(program, work):
    """Runs work(folder) with a folder for its files; its result is the exit status."""
    folder = tempfile.mkdtemp(prefix=f'{program}.')
    sys.stdout.flush()
    worker = os.fork()
    if not worker:
        os._exit(worker_main(work, folder))
    status = 1
    try:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        for number in ENDING:
            signal.signal(number, interrupted)
        status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        if status < 0:
            print(f'{program}: killed by signal {-status}', file=sys.stderr)
            status = 128 - status
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        end_descendants()
        shutil.rmtree(folder, ignore_errors=True)
    return status


def worker_main(work, folder):
    guard = os.getppid()
    try:
        # a session of its own: what kills the guard's process group leaves one that tidies up
        os.setsid()
        for number in ENDING:
            signal.signal(number, interrupted)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != guard:
            return 1
        return work(folder) or 0
    except SystemExit as reason:
        return reason.code if isinstance(reason.code, int) else 1
    except BaseException:  # pylint: disable=broad-except
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        end_descendants()
        if os.getppid() != guard:
            shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.flush()
        sys.stderr.flush()


class Failure(Exception):
    """A command that failed; the text says how, `output` is what it wrote before."""

    def __init__(self, text, output=''):
        super().__init__(text)
        self.output = output


class Result:
    """The output of a command, and how long it took."""

    def __init__(self, output, seconds):
        self.output = output
        self.seconds = seconds


def wait(process, timeout):
    """True when it has ended in time."""
    fd = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(1000 * timeout))
    finally:
        os.close(fd)


def last_lines(text, most=4):
    """The end of what a command said, without rules and empty lines."""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    return ' | '.join(lines[-most:])


def run(command, timeout, folder, env=None):
    """Runs a command to its end and makes sure that it is all over then; a Result, or Failure."""
    with tempfile.TemporaryFile('w+', dir=folder, errors='replace') as out, \
            tempfile.TemporaryFile('w+', dir=folder, errors='replace') as err:
        start = time.monotonic()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env=env, start_new_session=True)
        except OSError as reason:
            raise Failure(f'cannot run {command[0]}: {reason.strerror}') from reason
        in_time = wait(process, timeout)
        seconds = time.monotonic() - start
        if not in_time:
            process.terminate()  # lets a launcher remove its files
            wait(process, POLITE_SECONDS)
        status = process.poll()
        end_descendants()
        out.seek(0)
        err.seek(0)
        output, errors = out.read(), err.read()
    if in_time and not status:
        return Result(output, seconds)
    how = f'status {status}' if in_time else f'did not end in {timeout:g} s'
    said = last_lines(errors)
    raise Failure(f'{how}: {said}' if said else how, output)
