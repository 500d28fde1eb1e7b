# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The constants of the C headers, as Fortran has them."""
import re

import table

HANDLE = re.compile(r'#define (MPI_\w+)\s+\(\(MPI_(\w+)\)(0x[0-9a-f]+)\)')
ALIAS = re.compile(r'#define (MPI_\w+)\s+(MPI_\w+)$', re.MULTILINE)
NUMBER = re.compile(r'#define (MPI_\w+)\s+(-?\d+)\b')
MEMBER = re.compile(r'^\t(MPIX?_\w+) = (-?\w+),?', re.MULTILINE)

# Constants that only C needs.
NOT_HERE = re.compile(r'MPI_(?:T_.*|F_.*|H_ABI)')

# Strings have no closing zero here.
LENGTHS = re.compile(r'MPI_MAX_\w+')

# Ways to see a status, and kinds.
OWN = [
    ('MPI_STATUS_SIZE', 8),
    ('MPI_SOURCE', 1),
    ('MPI_TAG', 2),
    ('MPI_ERROR', 3),
    ('MPI_ADDRESS_KIND', 8),
    ('MPI_OFFSET_KIND', 8),
    ('MPI_COUNT_KIND', 8),
    ('MPI_INTEGER_KIND', 4),
]


def without_comments(path):
    with open(path, encoding='utf-8') as file:
        return re.sub(r'/\*.*?\*/', '', file.read(), flags=re.DOTALL)


def read(paths):
    """(integers, handles): lists of (name, value), lists of (name, kind, value)."""
    integers, handles = list(OWN), []
    for path in paths:
        text = without_comments(path)
        found = {}
        for name, kind, value in HANDLE.findall(text):
            if kind in table.HANDLES:
                found[name] = (name, kind, int(value, 16))
        for name, other in ALIAS.findall(text):
            if other in found:
                found[name] = (name,) + found[other][1:]
        handles += found.values()
        numbers = NUMBER.findall(text) + MEMBER.findall(text)
        for name, value in numbers:
            if NOT_HERE.fullmatch(name):
                continue
            value = int(value, 0) - (1 if LENGTHS.fullmatch(name) else 0)
            integers.append((name, value))
    return integers, handles
