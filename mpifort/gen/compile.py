#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Compiles the Fortran sources in the order given, each to an object, their modules beside them.

Usage: compile.py OUTPUT_DIR SOURCE... -- COMPILER ARGUMENT...
"""
import pathlib
import subprocess
import sys


def main(argv):
    at = argv.index('--')
    out, sources, command = pathlib.Path(argv[0]), argv[1:at], argv[at + 1:]
    for source in sources:
        target = out / (pathlib.Path(source).stem + '.o')
        subprocess.run(command + ['-J', str(out), '-c', source, '-o', str(target)], check=True)


if __name__ == '__main__':
    main(sys.argv[1:])
