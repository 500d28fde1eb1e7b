# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Says what machine figures are from: what tells two machines apart, and nothing that names this one."""
import os
import pathlib
import platform
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text_of(path):
    try:
        return pathlib.Path(path).read_text(encoding='utf-8', errors='replace').strip()
    except OSError:
        return ''


def first_line(*command):
    """Of what a program says, or '' where it is not there."""
    if not shutil.which(command[0]):
        return ''
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ''
    return said.stdout.strip().partition('\n')[0]


def cpu_field(name):
    found = re.search(rf'^{name}\s*:\s*(.*)$', text_of('/proc/cpuinfo'), re.MULTILINE)
    return found.group(1).strip() if found else ''


def caches():
    """'L1d 48 KiB, L2 1 MiB, L3 32 MiB (2 cores)': of the first core, and who shares the last."""
    found = []
    for index in sorted(pathlib.Path('/sys/devices/system/cpu/cpu0/cache').glob('index*')):
        level, kind = text_of(index / 'level'), text_of(index / 'type')
        size = text_of(index / 'size')
        if kind == 'Instruction' or not size:
            continue
        kib = int(size.rstrip('K'))
        shown = f'{kib // 1024} MiB' if kib >= 1024 and not kib % 1024 else f'{kib} KiB'
        shared = text_of(index / 'shared_cpu_list')
        more = f' (shared by cores {shared})' if level != '1' and re.search('[-,]', shared) else ''
        found.append(f'L{level}{"d" if kind == "Data" else ""} {shown}{more}')
    return ', '.join(found)


def memory_gib():
    found = re.search(r'^MemTotal:\s*(\d+)', text_of('/proc/meminfo'), re.MULTILINE)
    return round(int(found.group(1)) / (1 << 20)) if found else 0


def virtual():
    """The kind of virtual machine, or ''."""
    kind = first_line('systemd-detect-virt', '--vm')
    if kind and kind != 'none':
        return kind
    return 'virtual machine' if ' hypervisor ' in f' {cpu_field("flags")} ' else ''


def system():
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text_of('/etc/os-release'), re.MULTILINE)
    return found.group(1) if found else platform.system()


def version():
    """Postern's version, and the commit where the sources are a git checkout."""
    found = re.search(r"version: '([^']*)'", text_of(ROOT / 'meson.build'))
    number = found.group(1) if found else 'unknown'
    commit = first_line('git', '-C', str(ROOT), 'describe', '--always', '--dirty', '--abbrev=10')
    return f'{number} ({commit})' if commit else number


def describe():
    """Names and texts, for people."""
    cores = len(os.sched_getaffinity(0))
    cpu = cpu_field('model name') or cpu_field('Model') or platform.machine()
    kind = virtual()
    machine = f'{kind}, ' if kind else ''
    return {
        'class': f'{machine}{cores} core{"s" if cores > 1 else ""}, {cpu}, '
                 f'{memory_gib()} GiB of memory',
        'cpu': cpu,
        'cores': cores,
        'caches': caches(),
        'memory_gib': memory_gib(),
        'virtual': kind or 'no',
        'system': system(),
        'kernel': platform.release(),
        'architecture': platform.machine(),
        'compiler': first_line('cc', '--version'),
        'postern': version(),
    }


def without_places(words):
    """A command without the folders that only this machine has."""
    shown = []
    for word in words:
        path = pathlib.Path(word)
        if path.is_absolute():
            inside = path.is_relative_to(ROOT)
            word = str(path.relative_to(ROOT)) if inside else path.name
        shown.append(word)
    return shown
