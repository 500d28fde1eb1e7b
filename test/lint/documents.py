#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Rules of the documents, for rules.py; by itself: the words of each document and its long sentences.

Usage: documents.py [SOURCE_DIR]
"""
import glob
import pathlib
import re
import sys

MAP = 'doc/architecture.md'
MAP_MOST = 1700       # words
INVARIANT_MOST = 80   # ... of each item under the heading that has INVARIANTS in it
INVARIANTS = 'nvariants'
SENTENCE_MOST = 35

# Names with a slash that are no files of the tree: what is installed, built or made by programs.
ELSEWHERE = re.compile(r'^(?:/|~|build|lib/|postern/)|[$<>:=%]|NAME')
FENCE = re.compile(r'^\s*```.*?^\s*```', re.MULTILINE | re.DOTALL)
CODE_BLOCK = re.compile(r'(?:(?<=\n\n)|\A)(?: {4,}|\t).*\n(?:(?: {4,}|\t).*\n|\n(?= {4,}|\t))*')
LINK = re.compile(r'\]\(([^)#\s]+)(?:#[^)]*)?\)')
QUOTED = re.compile(r'`([^`\n]+)`')
NAME = re.compile(r'[\w./*{},+-]+')
FOLDERS = tuple(f'{name}/' for name in ('base', 'bench', 'doc', 'examples', 'include', 'mpi_shim', 'mpifort', 'nal', 'portals',
                                        'runtime', 'rwapi_shim', 'test', 'tools'))


def text_of(root, path):
    return (root / path).read_text(encoding='utf-8')


def documents(files):
    """README.md, CONTRIBUTING.md, and the pages of doc/."""
    return [path for path in files if path.suffix == '.md' and
            (path.parts[0] == 'doc' or path.as_posix() in ('README.md', 'CONTRIBUTING.md'))]


def words(text):
    """A word has a letter or a digit in it; lines of tables and pictures have their words counted, too."""
    return sum(bool(re.search(r'[^\W_]', word)) for word in text.split())


def expanded(name):
    """a/{b,c} as a/b and a/c."""
    match = re.search(r'\{([^{}]*)\}', name)
    if not match:
        return [name]
    return [one for part in match.group(1).split(',')
            for one in expanded(name[:match.start()] + part + name[match.end():])]


def is_there(root, path, name):
    return any(glob.glob(str(base / name)) for base in (root, root / path.parent))


def names_in(text):
    """(line, name) of each file or folder that a document names: in backquotes, or in its pictures and commands."""
    for number, line in enumerate(text.splitlines(), 1):
        spans = QUOTED.findall(line) + ([line] if line.startswith('    ') else [])
        for word in ' '.join(spans).split():
            name = word.strip('.,;()\'"')
            if '/' not in name or ELSEWHERE.search(name) or not NAME.fullmatch(name):
                continue
            if line.startswith('    ') and not name.startswith(FOLDERS):
                continue
            for one in expanded(name):
                yield number, one


def documents_name_what_exists(root, files):
    for path in documents(files):
        text = text_of(root, path)
        for number, name in names_in(text):
            if not is_there(root, path, name.rstrip('/')):
                yield f'{path}:{number}: {name} does not exist'
        for number, line in enumerate(text.splitlines(), 1):
            for name in LINK.findall(line):
                if '://' not in name and not (root / path.parent / name).exists():
                    yield f'{path}:{number}: a link to {name}, which does not exist'


def invariants(text):
    """The items under the heading of invariants: (first words, words)."""
    section = re.search(rf'^#+ [^\n]*{INVARIANTS}[^\n]*\n(.*?)(?=^# |^## |\Z)', text,
                        re.MULTILINE | re.DOTALL)
    for item in re.split(r'^\d+\. ', section.group(1), flags=re.MULTILINE)[1:] if section else ():
        yield ' '.join(item.split()[:4]), words(item.split('\n\n')[0])


def the_map_is_short(root, files):
    if not (root / MAP).is_file():
        return
    text = text_of(root, MAP)
    if words(text) > MAP_MOST:
        yield f'{MAP}: {words(text)} words; {MAP_MOST} at most'
    for first, count in invariants(text):
        if count > INVARIANT_MOST:
            yield f'{MAP}: "{first} ..." has {count} words; {INVARIANT_MOST} at most'


def sentences(text):
    """Of paragraphs, items and cells of tables."""
    text = CODE_BLOCK.sub('\n', FENCE.sub('\n', text))
    text = QUOTED.sub('X', text)
    text = re.sub(r'\]\([^)]*\)', ']', text)
    text = re.sub(r'^\s*(?:[*-]|\d+\.) +', '\n\n', text, flags=re.MULTILINE)
    text = re.sub(r'^#.*$', '\n', text, flags=re.MULTILINE)
    text = re.sub(r'^\|.*$', lambda row: row.group().replace('|', '\n\n') + '\n', text, flags=re.MULTILINE)
    for paragraph in re.split(r'\n\s*\n', text):
        yield from re.split(r'(?<=[.?!])[*)"]*\s+(?=[^a-z])', ' '.join(paragraph.split()))


def long_sentences(text):
    return [sentence for sentence in sentences(text) if words(sentence) > SENTENCE_MOST]


def sentences_of_documents_are_short(root, files):
    for path in documents(files):
        if path.parts[0] == 'doc':
            for sentence in long_sentences(text_of(root, path)):
                yield (f'{path}: {words(sentence)} words, {SENTENCE_MOST} at most: '
                       f'"{" ".join(sentence.split()[:8])} ..."')


RULES = [documents_name_what_exists, the_map_is_short, sentences_of_documents_are_short]


def main():
    if '--help' in sys.argv:
        print(__doc__.strip())
        return
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    files = [path.relative_to(root) for path in sorted(root.glob('*.md')) + sorted(root.glob('doc/**/*.md'))]
    for path in documents(files):
        text = text_of(root, path)
        print(f'{words(text):6} words, {len(long_sentences(text)):3} long sentences  {path}')
    for rule in RULES:
        for place in rule(root, files):
            print(place)


if __name__ == '__main__':
    main()
