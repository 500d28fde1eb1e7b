#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The recipes in packaging/ and the Debian package speak of this version and of options that there are.

Usage: packaging.py SOURCE_DIR
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
MESON = (ROOT / 'meson.build').read_text()
VERSION = re.search(r"^  version: '([^']+)'", MESON, re.MULTILINE).group(1)
MESON_VERSION = re.search(r"meson_version: '>=([^']+)'", MESON).group(1)
FEATURE = ('enabled', 'disabled', 'auto')


def options():
    """name -> the values it may have; those of arrays may be several."""
    found = {}
    for name, kind, rest in re.findall(r"^option\('(\w+)', type: '(\w+)'(.*?)\)$", (ROOT / 'meson_options.txt').read_text(),
                                       re.MULTILINE | re.DOTALL):
        if kind == 'array':
            found[name] = re.findall(r"'(\w+)'", re.search(r'choices: \[(.*?)\]', rest, re.DOTALL).group(1))
        else:
            found[name] = {'feature': FEATURE, 'boolean': ('true', 'false')}[kind]
    return found


def wrong_options(text):
    """The -D arguments of a text that are no options, or whose value is none. A value may be made by a program."""
    there = options()
    for name, value in re.findall(r"-D(\w+)=([\w,]*)", text):
        if name in ('includedir', 'debug'):
            continue
        if name not in there:
            yield f'-D{name}: there is no such option'
        elif value and not set(value.split(',')) <= set(there[name]):
            yield f'-D{name}={value}: it may be {", ".join(there[name])}'


def spack():
    text = (ROOT / 'packaging/spack/postern/package.py').read_text()
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    versions = [node.args[0].value for node in calls if node.func.id == 'version']
    if versions[:1] != [VERSION]:
        yield f'the first version is {versions[:1]}, not {VERSION}'
    if f'postern-{VERSION}.tar' not in text:
        yield 'url: another version'
    if f'meson@{".".join(MESON_VERSION.split(".")[:2])}:' not in text:
        yield f'meson: not {MESON_VERSION} or later'
    variants = {node.args[0].value for node in calls if node.func.id == 'variant'}
    for name in set(re.findall(r'feature\("(\w+)"\)', text)) | set(re.findall(r'when="[+~](\w+)"', text)):
        if name not in variants:
            yield f'{name}: no such variant'
    nals = re.findall(r'nals = (\[.*?\])', text)
    for one in nals:
        if not set(ast.literal_eval(one)) <= set(options()['nals']):
            yield f'nals: {one}'
    yield from wrong_options(text)


def easybuild():
    files = list((ROOT / 'packaging/easybuild').glob('*.eb'))
    if len(files) != 1 or not files[0].name.startswith(f'Postern-{VERSION}-'):
        yield f'{[f.name for f in files]}: not one for version {VERSION}'
        return
    values = {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(files[0].read_text()).body
              if isinstance(node, ast.Assign)}
    if values['version'] != VERSION:
        yield f'version {values["version"]}'
    toolchain = values['toolchain']
    if files[0].name != f'{values["name"]}-{VERSION}-{toolchain["name"]}-{toolchain["version"]}.eb':
        yield 'the name of the file does not say what is in it'
    if not any(name == 'Meson' and version >= MESON_VERSION for name, version in values['builddependencies']):
        yield f'no Meson {MESON_VERSION} or later'
    yield from wrong_options(values['configopts'])


def debian():
    first = (ROOT / 'debian/changelog').read_text().split('\n')[0]
    if f'({VERSION})' not in first:
        yield first
    yield from wrong_options((ROOT / 'debian/rules').read_text())
    control = (ROOT / 'debian/control').read_text()
    for package in re.findall(r'^Package: (\S+)', control, re.MULTILINE):
        if not (ROOT / f'debian/{package}.install').is_file():
            yield f'{package}: nothing is installed'


def changelog():
    heads = re.findall(r'^## (\S+)', (ROOT / 'CHANGELOG.md').read_text(), re.MULTILINE)
    if heads[:1] != [VERSION]:
        yield f'the first heading is {heads[:1]}, not {VERSION}'


def can_fail():
    """What the others rest on: an option that is none is found."""
    if len(list(wrong_options('-Dofi=perhaps -Dnothing=1 -Dnals=shm,udp'))) != 2:
        yield 'wrong options are not found'


bad = 0
CASES = [spack, easybuild, debian, changelog, can_fail]
for number, case in enumerate(CASES, 1):
    problems = list(case())
    bad += bool(problems)
    print(f'{"not " if problems else ""}ok {number} - {case.__name__}')
    for problem in problems:
        print('#', problem)
print(f'1..{len(CASES)}')
sys.exit(bool(bad))
