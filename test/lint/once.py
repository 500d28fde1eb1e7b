#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The compile commands of a build directory without those that say again how a source is compiled: a source of several
libraries and tests need not be looked at for each. Usage: once.py compile_commands.json >OUT/compile_commands.json"""

import json
import re
import sys

commands = {}
for entry in json.load(open(sys.argv[1])):
    # where headers are and what is linked later differs, what the source is told by macros matters
    macros = tuple(sorted(set(re.findall(r'-D\S+', entry['command']))))
    commands.setdefault((entry['file'], macros), entry)
json.dump(list(commands.values()), sys.stdout, indent=1)
