# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""How far a long measurement is: a bar with the remaining time on a terminal (tqdm, on Debian python3-tqdm), plain
lines elsewhere.
"""
import sys
import time

try:
    from tqdm import tqdm
except ImportError:  # the lines say the same
    tqdm = None


def clock(seconds):
    return f'{seconds // 60}:{seconds % 60:02}'


class Bar:
    """Of runs that take different times: what is left is told from how long each took in the round before."""

    def __init__(self, total):
        self.total = total
        self.start = time.monotonic()
        self.bar = None
        if tqdm and sys.stdout.isatty():
            self.bar = tqdm(total=total, file=sys.stdout, leave=False, dynamic_ncols=True,
                            bar_format='{bar:24} {n_fmt}/{total_fmt}, {desc}')

    def show(self, text, done, left, took):
        """`left`: seconds of each run that is to come, None where not known; `took`: of those that are."""
        mean = sum(took) / len(took) if took else 0
        seconds = round(sum(mean if one is None else one for one in left))
        remaining = f'about {clock(seconds)} left' if took else 'remaining time not known yet'
        if self.bar is not None:
            self.bar.n = done
            self.bar.set_description_str(f'{remaining}: {text}')
        else:
            passed = round(time.monotonic() - self.start)
            print(f'{clock(passed)} {done}/{self.total}, {remaining}: {text}', flush=True)

    def close(self):
        if self.bar is not None:
            self.bar.close()
