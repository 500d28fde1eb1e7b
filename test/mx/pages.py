#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Headers, manual pages and the map of libopen-mx say the same of MX and Open-MX.

Usage: pages.py SOURCE_DIR
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
MX = ['myriexpress.h', 'mx_extensions.h', 'mx_io.h', 'mx_raw.h', 'mx_internals/mx__fops.h',
      'mx_internals/mx__driver_interface.h']
PROTOTYPE = re.compile(r'^(?:extern )?((?:const )?\w+(?: \*)?) ?\*?(\w+)\(([^;{}]*)\);', re.MULTILINE)
OBJECT = re.compile(r'^extern const \w+ (\w+);', re.MULTILINE)


def header_text(name):
    text = re.sub(r'/\*.*?\*/', '', (ROOT / 'include' / name).read_text(), flags=re.DOTALL)
    return re.sub(r'^#.*$', '', text, flags=re.MULTILINE)


def declared(names):
    """Function -> its arguments; the objects; where each stands."""
    functions, objects, place = {}, set(), {}
    for name in names:
        text = header_text(name)
        for match in PROTOTYPE.finditer(text):
            functions[match.group(2)] = [' '.join(arg.split()) for arg in match.group(3).split(',')]
            place[match.group(2)] = name
        objects.update(OBJECT.findall(text))
    return functions, objects, place


def page_of(name):
    """The text of a page, through its alias."""
    text = (ROOT / 'doc/man' / f'{name}.3').read_text()
    if text.startswith('.so '):
        text = (ROOT / 'doc/man' / text.split()[1].split('/')[1]).read_text()
    return text


def names_of(text):
    return re.findall(r'^\.Nm (\w+)', text.split('.Nd ')[0], re.MULTILINE)


def arguments_of(text, function):
    match = re.search(rf'^\.Fo {function}\n(.*?)^\.Fc', text, re.MULTILINE | re.DOTALL)
    return re.findall(r'^\.Fa "(.*)"$', match.group(1), re.MULTILINE) if match else None


def wrong_pages(functions, objects):
    for name in sorted(set(functions) | objects):
        if not (ROOT / 'doc/man' / f'{name}.3').is_file():
            yield f'{name}: no page'
            continue
        text = page_of(name)
        if name not in names_of(text):
            yield f'{name}: the page does not name it'
        if name in functions and arguments_of(text, name) != functions[name]:
            yield f'{name}: the page says {arguments_of(text, name)}, the header {functions[name]}'


def strange_pages(known):
    for path in sorted((ROOT / 'doc/man').glob('*.3')):
        if path.stem.startswith(('mx_', 'MX_', 'omx_', 'OMX_')):
            if path.stem not in known:
                yield f'{path.name}: nothing of that name is declared'


def headers_not_shown(functions, place):
    """A program that includes what the page shows has the function declared."""
    shows = {'mx_extensions.h': {'myriexpress.h', 'mx_extensions.h'},
             'mx_internals/mx__driver_interface.h': {name for name in MX if 'raw' not in name and 'ext' not in name}}
    for name in functions:
        text = page_of(name)
        included = re.findall(r'^\.In (\S+)', text, re.MULTILINE)
        if place[name] not in {header for top in included for header in shows.get(top, {top})}:
            yield f'{name}: is in {place[name]}, the page shows {included}'


def map_differs(functions, objects):
    text = re.sub(r'/\*.*?\*/', '', (ROOT / 'mx_shim/libopen-mx.map').read_text(), flags=re.DOTALL)
    exported = set(re.findall(r'^\t(\w+);', text, re.MULTILINE))
    for name in sorted(exported ^ (set(functions) | objects)):
        yield f'{name}: only in the {"map" if name in exported else "header"}'


def main():
    functions, objects, place = declared(MX)
    omx, omx_objects, omx_place = declared(['open-mx.h'])
    known = set(functions) | objects | set(omx) | omx_objects | {'mx_init', 'mx_raw'}
    cases = [
        ('declarations are found', [] if 'mx_isend' in functions and 'omx_isend' in omx and
         {'MX_ERRORS_RETURN', 'OMX_ERRORS_RETURN'} <= objects | omx_objects and
         len([name for name in functions if name.startswith('mx_raw_')]) == 17 else ['some are not']),
        ('every function of MX has a page with its arguments', wrong_pages(functions, objects)),
        ('every function of Open-MX has a page with its arguments', wrong_pages(omx, omx_objects)),
        ('pages show the headers that declare', list(headers_not_shown(functions, place)) +
         list(headers_not_shown(omx, omx_place))),
        ('no page is of something else', strange_pages(known)),
        ('libopen-mx.map has what open-mx.h declares', map_differs(omx, omx_objects)),
    ]
    broken = 0
    print(f'1..{len(cases)}')
    for number, (text, places) in enumerate(cases, 1):
        places = list(places)
        broken += bool(places)
        print(f'{"not ok" if places else "ok"} {number} - {text}')
        for place in places:
            print(f'# {place}')
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
