#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The words of the code, for rules.py: names are the field's, and comments are no wider than the code.

By itself it prints how many names have each of the words that are to go.

Usage: words.py [SOURCE_DIR]
"""
import collections
import pathlib
import re
import sys

FOLDERS = ('base', 'mpi_shim', 'nal', 'portals', 'runtime', 'tools')
COLUMNS = 100
BY_HAND = (('include', 'mpi'), ('include', 'mpi_abi')) # tables of the standard

# A word of the project's own, as a part of a name -> what the field calls it, and how many names have the word today. No new
# one is taken; when some have gone, the number is to be made less.
WORDS = {
    'bell': ('doorbell', 4),
    'crowded': ('oversubscribed', 12),
    'hub': ('shmcoll', 131),
    'lacking': ('out of memory', 7),
    'landing': ('delivery', 15),
    'letter': ('header of an alltoallv', 7),
    'master': ('leader', 8),
    'meeting': ('node barrier', 5),
    'note': ('small slot', 16),
    'nudge': ('notify', 1),
    'piece': ('segment', 58),
    'place': ('cell', 25),
    'plan': ('schedule', 58),
    'seat': ('slot', 7),
    'taker': ('inline handler', 2),
    'team': ('creation group', 12),
    'told': ('advertised', 8),
    'took': ('consumed', 5),
    'way': ('path, mode or autotuner', 65),
    'withdraw': ('cancel', 10),
}

COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
NAME = re.compile(r'[A-Za-z_]\w*')


def sources(files):
    return [path for path in files if path.suffix in ('.c', '.h')]


def text_of(root, path):
    return (root / path).read_text(encoding='utf-8', errors='replace')


def names_of(root, files):
    """The words -> names of the production code that have them, in the singular or plural."""
    found = collections.defaultdict(set)
    for path in sources(files):
        if path.parts[0] not in FOLDERS:
            continue
        for name in set(NAME.findall(COMMENT_OR_TEXT.sub(' ', text_of(root, path)))):
            for part in name.lower().split('_'):
                for word in (part, part.removesuffix('s')):
                    if word in WORDS:
                        found[word].add(name)
    return found


def no_new_name_has_a_word_of_our_own(root, files):
    found = names_of(root, files)
    for word, (standard, most) in WORDS.items():
        number = len(found[word])
        if number > most:
            yield f'{word}: {number} names have it, {most} had; the field says {standard}'
        elif number < most and root == pathlib.Path(__file__).resolve().parents[2]:
            yield f'{word}: only {number} names have it: say so in WORDS'


def no_comment_is_wide(root, files):
    for path in sources(files):
        if path.parts[:2] in BY_HAND:
            continue
        text = text_of(root, path)
        for match in COMMENT_OR_TEXT.finditer(text):
            if not match.group().startswith('/') or '+--' in match.group(): # pictures
                continue
            start = text.rfind('\n', 0, match.start()) + 1
            for number, line in enumerate(text[start:match.end()].split('\n')):
                if len(line.expandtabs(8)) > COLUMNS:
                    first = text.count('\n', 0, match.start()) + 1
                    yield f'{path}:{first + number}: a comment of {len(line.expandtabs(8))} columns'


RULES = [no_new_name_has_a_word_of_our_own, no_comment_is_wide]


def main():
    if '--help' in sys.argv:
        print(__doc__.strip())
        return 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    files = [path.relative_to(root) for folder in FOLDERS for path in (root / folder).rglob('*')]
    for word, names in sorted(names_of(root, files).items()):
        print(f'{word} {len(names)}: {" ".join(sorted(names))}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
