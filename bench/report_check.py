# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Looks at a report's page as a reader does: opens it in Chromium without a screen, takes a picture of all of
it, and finds every plot in the picture with curves in the colours that the page says it has.

Usage: report_check.py PAGE.html FOLDER

A line for each plot on standard output. The exit status is 1 if a plot does not show what it should, 77 if this
cannot be checked here; standard error says why.
"""
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys

try:
    from PIL import Image, ImageChops
except ImportError:
    Image = None

WIDTH = 1100
SECONDS = 120
NEAR = 48  # a pixel is of a colour if no channel is further away: edges are smoothed
LEAST_PIXELS = 60  # of each colour
LEAST_WIDE = 0.4  # of the plot's width, all curves together
LEAST_INK, MOST_INK = 0.004, 0.5  # share of the plot that is not white

# Says where the plots are; only this copy of the page has a script.
SCRIPT = '''<script>
addEventListener('load', () => {
  const plots = [...document.querySelectorAll('figure')].map(figure => {
    const box = figure.querySelector(':scope > svg').getBoundingClientRect();
    return {name: figure.id, colours: figure.dataset.colours.split(' '),
            box: [box.left, box.top + scrollY, box.right, box.bottom + scrollY].map(Math.round)};
  });
  const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
  document.body.dataset.plots = JSON.stringify({height, plots});
});
</script>'''


class Unchecked(Exception):
    """Why this cannot be checked here."""


class Where(html.parser.HTMLParser):
    """The result of SCRIPT."""

    def __init__(self):
        super().__init__()
        self.found = None

    def handle_starttag(self, tag, attrs):
        if tag == 'body':
            self.found = dict(attrs).get('data-plots')


def chromium(folder, *options):
    browser = shutil.which('chromium') or shutil.which('chromium-browser')
    if not browser:
        raise Unchecked('chromium is not installed')
    command = [browser, '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
               '--disable-dev-shm-usage', '--force-device-scale-factor=1',
               f'--user-data-dir={folder}/profile', *options, (folder / 'page.html').as_uri()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as reason:
        raise Unchecked(f'chromium did not end in {SECONDS} s') from reason
    if done.returncode:
        raise Unchecked(f'chromium ended with status {done.returncode}: '
                        f'{done.stderr.strip()[-300:]}')
    return done.stdout


def places(folder):
    where = Where()
    where.feed(chromium(folder, f'--window-size={WIDTH},1000', '--virtual-time-budget=5000',
                        '--dump-dom'))
    if not where.found:
        raise Unchecked('chromium ran no script')
    return json.loads(where.found)


def of_colour(plot, colour):
    """A mask of the pixels that have it."""
    wanted = tuple(int(colour[i:i + 2], 16) for i in (1, 3, 5))
    difference = ImageChops.difference(plot, Image.new('RGB', plot.size, wanted))
    near = [channel.point(lambda v: 255 if v <= NEAR else 0) for channel in difference.split()]
    return ImageChops.multiply(ImageChops.multiply(near[0], near[1]), near[2])


def count(mask):
    return mask.histogram()[255]


def faults(plot, colours):
    """The faults of a plot."""
    width, height = plot.size
    if width < 300 or height < 150:
        yield f'is only {width} x {height}'
        return
    white = count(of_colour(plot, '#ffffff'))
    ink = 1 - white / (width * height)
    if not LEAST_INK <= ink <= MOST_INK:
        yield f'{100 * ink:.2f} % of it is not white'
    together = None
    for colour in colours:
        mask = of_colour(plot, colour)
        if count(mask) < LEAST_PIXELS:
            yield f'{count(mask)} pixels of {colour}'
        together = ImageChops.lighter(together, mask) if together else mask
    box = together.getbbox() if together else None
    if not box or box[2] - box[0] < LEAST_WIDE * width:
        yield f'curves only in {box}'


def check(page, folder):
    """The exit status."""
    if Image is None:
        raise Unchecked('python3-pil is not installed')
    text = page.read_text(encoding='utf-8')
    if not re.search(r'<figure\b', text):
        print('no plots in the page')
        return 1
    (folder / 'page.html').write_text(text.replace('</body>', SCRIPT + '</body>'),
                                      encoding='utf-8')
    where = places(folder)
    picture = folder / 'page.png'
    chromium(folder, f'--window-size={WIDTH},{where["height"]}', f'--screenshot={picture}')
    with Image.open(picture) as image:
        whole = image.convert('RGB')
    bad = 0
    for plot in where['plots']:
        found = list(faults(whole.crop(plot['box']), plot['colours']))
        print(f'{plot["name"]}: {"; ".join(found) or "as it should be"}')
        bad += bool(found)
    return 1 if bad else 0


def main():
    if len(sys.argv) != 3 or '--help' in sys.argv:
        print(__doc__.strip(), file=sys.stderr)
        return 0 if '--help' in sys.argv else 2
    try:
        return check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve())
    except Unchecked as reason:
        print(reason, file=sys.stderr)
        return 77


if __name__ == '__main__':
    sys.exit(main())
