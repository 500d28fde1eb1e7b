#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes the PMPI half of a header that declares MPI functions from its MPI half.

Usage: pmpi.py [--check] HEADER

With --check the header is not written: the status says whether it is as it should be.
"""
import re
import sys

import protos

END = '\n#ifdef __cplusplus\n}\n#endif\n'


def with_pmpi(text):
    """The text with everything between the mark and the closing bracket written anew."""
    mark = protos.HALVES.search(text)
    end = text.rindex(END)
    half = text[:mark.start()]
    half = re.sub(r'/\*.*?\*/', lambda m: m.group() if '----' in m.group() else '', half,
                  flags=re.DOTALL)
    declared = [protos.wrap(f.declare('P' + f.name)) + ';' for f in protos.parse(half)]
    return text[:mark.end()] + '\n\n' + '\n'.join(declared) + '\n' + text[end:]


def main(argv):
    check = '--check' in argv
    path = argv[-1]
    with open(path, encoding='utf-8') as file:
        text = file.read()
    wanted = with_pmpi(text)
    if check:
        if text != wanted:
            print(f'{path}: the PMPI half does not follow from the MPI half; run pmpi.py {path}')
        return text != wanted
    protos.write_if_changed(path, wanted)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
