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

FOLDERS = ('base', 'dp_shim', 'mpi_shim', 'mx_shim', 'nal', 'portals', 'runtime', 'rwapi_shim', 'tools')
COLUMNS = 100
WORDS_MOST = 35 # of a sentence
BY_HAND = (('include', 'mpi'), ('include', 'mpi_abi')) # tables of the standard

# A word of the project's own, as a part of a name -> what the field calls it, and the names in which it means something else.
WORDS = {
    'bare': ('headerless', ''),
    'bell': ('doorbell', ''),
    'crowd': ('oversubscribed', ''),
    'crowded': ('oversubscribed', ''),
    'hub': ('shmcoll', ''),
    'lacking': ('no_memory', ''),
    'landed': ('delivered', ''),
    'landing': ('delivery', ''),
    'letter': ('header of an alltoallv', ''),
    'look': ('poll, check or find', 'LOOK_MS PTL_TIME_LOOK look_from'),
    'looked': ('polled or checked', ''),
    'master': ('leader', ''),
    'meeting': ('node barrier', ''),
    'near': ('on-node, or what it is', ''),
    'note': ('small slot', 'RDMA_NOTE note note_bytes note_of note_peer note_signal notes ptl_undo_note step_or_note want_note'),
    'nudge': ('notify', ''),
    'passed': ('failed over', ''),
    'piece': ('segment', ''),
    'plan': ('schedule', ''),
    'seat': ('slot', ''),
    'taker': ('inline handler', ''),
    'team': ('creation', ''),
    'told': ('advertised', ''),
    'took': ('consumed', ''),
    'way': ('path, mode or tuner', 'PTL_COUNT_WAY_CHANGED PTL_COUNT_WAY_TRIED WAY_CHANGED WAY_TRIED both_ways gave_way '
            'one_way under_way'),
    'withdraw': ('cancel', ''),
}

COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
SENTENCE_END = re.compile(r'(?<=[.;:!?])\s|\n\s*\n|\n\s*[-*] |\n {3,}')
PRONOUN = re.compile(r'(?:Who|What)\b')
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


def no_name_has_a_word_of_our_own(root, files):
    found = names_of(root, files)
    for word, (standard, others) in WORDS.items():
        for name in sorted(found[word] - set(others.split())):
            yield f'{name}: the field says {standard} for {word}'
        if root == pathlib.Path(__file__).resolve().parents[2]:
            for name in sorted(set(others.split()) - found[word]):
                yield f'{name}: is no name any more: take it out of WORDS'


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


def no_sentence_of_a_comment_is_long(root, files):
    for path in sources(files):
        if path.parts[0] not in FOLDERS:
            continue
        text = text_of(root, path)
        for match in COMMENT_OR_TEXT.finditer(text):
            comment = match.group()
            if not comment.startswith('/*') or '+--' in comment or '->' in comment: # pictures
                continue
            for sentence in SENTENCE_END.split(re.sub(r'\n[ \t]*\*?', '\n', comment.strip('/* \n'))):
                words = sentence.split()
                if len(words) > WORDS_MOST:
                    line = text.count('\n', 0, match.start()) + 1
                    yield f'{path}:{line}: a sentence of {len(words)} words: "{" ".join(words[:8])} ..."'


def no_sentence_of_a_comment_begins_with_a_pronoun(root, files):
    """A process or a thing has a name: "Who ..." and "What ..." are for questions."""
    for path in sources(files):
        text = text_of(root, path)
        for match in COMMENT_OR_TEXT.finditer(text):
            comment = match.group()
            if not comment.startswith('/'):
                continue
            for sentence in SENTENCE_END.split(re.sub(r'\n[ \t]*\*?', '\n', comment.strip('/* \n'))):
                sentence = ' '.join(sentence.split())
                if PRONOUN.match(sentence) and not sentence.endswith('?'):
                    line = text.count('\n', 0, match.start()) + 1
                    yield f'{path}:{line}: begin with the subject: "{sentence[:60]} ..."'


RULES = [no_name_has_a_word_of_our_own, no_comment_is_wide, no_sentence_of_a_comment_is_long,
         no_sentence_of_a_comment_begins_with_a_pronoun]


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
