# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Draws pictures of curves with gnuplot, as SVG that can stand inside a page. One look for all of them: light,
lines with marks, the range of the rounds as a pale band. Legends are the page's, so that they never lie on data.
"""
import dataclasses
import re
import shutil
import subprocess

FONT = 'Helvetica,Arial,sans-serif'
TIMES = ('1 ns', '10 ns', '100 ns', '1 µs', '10 µs', '100 µs', '1 ms', '10 ms', '100 ms', '1 s', '10 s')
INK, GRID = '#333333', '#dddddd'
SECONDS = 60


@dataclasses.dataclass
class Line:
    """A curve. Points are (x, y) or (x, y, least, most)."""
    label: str
    colour: str
    points: list
    mark: int = 7  # gnuplot's number; 0: none
    dash: str = ''  # gnuplot's dash type; '': none
    width: float = 2.2
    bars: bool = False


@dataclasses.dataclass
class Panel:
    """One pair of axes."""
    x_label: str
    y_label: str
    lines: list
    title: str = ''
    x_log: bool = True
    y_log: bool = False
    y_time: bool = False  # logarithmic, us with the unit at each tic
    x_tics: str = ''  # gnuplot's list, or ''
    y_range: str = '[*:*]'
    x_range: str = '[*:*]'


@dataclasses.dataclass
class Picture:
    """The plots drawn side by side, and their captions."""
    name: str
    title: str
    panels: list
    says: str
    height: int = 400
    legend: list = None  # lines as examples, where the panels' own do not serve

    def colours(self):
        """Of the curves, each once."""
        return list(dict.fromkeys(line.colour for panel in self.panels for line in panel.lines))

    def samples(self):
        """The legend: a line for each label."""
        lines = self.legend or [line for panel in self.panels for line in panel.lines
                                if not line.bars]
        return list({line.label: line for line in lines}.values())


def is_there():
    return shutil.which('gnuplot') is not None


def quoted(text):
    return '"' + re.sub(r'(["\\])', r'\\\1', text) + '"'


def block(name, line):
    """A curve's data. Values that a logarithmic axis cannot show have been left out before."""
    if line.bars:
        rows = [f'{point[0]:g} {point[1]:.9g} {quoted(line.label)}' for point in line.points]
        return [f'${name} << END', *rows, 'END']
    rows = [' '.join(f'{value:.9g}' for value in (*point, *(point[1], point[1])[len(point) - 2:]))
            for point in line.points]
    return [f'${name} << END', *rows, 'END']


def drawn(name, line):
    """The commands that plot a curve: the band of the rounds below, the line above."""
    if line.bars:
        return [f'${name} using 1:2:xtic(3) with boxes fillstyle solid 0.85 noborder '
                f'linecolor rgb {quoted(line.colour)} notitle']
    style = f'linecolor rgb {quoted(line.colour)}'
    dash = f' dashtype {line.dash}' if line.dash else ''
    mark = f'points pointtype {line.mark} pointsize 0.65' if line.mark else ''
    whole = f'${name} using 1:2 with lines{mark} linewidth {line.width}{dash} {style} notitle'
    if not any(len(point) > 2 and point[3] > point[2] for point in line.points):
        return [whole]
    return [f'${name} using 1:3:4 with filledcurves fillstyle transparent solid 0.16 noborder '
            f'{style} notitle', whole]


def usable(panel):
    """The lines with the points that the axes can show."""
    for line in panel.lines:
        points = [p for p in line.points
                  if not (panel.x_log and p[0] <= 0) and not ((panel.y_log or panel.y_time) and min(p[1:]) <= 0)]
        if points:
            yield dataclasses.replace(line, points=points)


def x_range_of(panel, lines):
    """A little more than the points take, rather than to the next power of ten."""
    places = [point[0] for line in lines for point in line.points]
    if panel.x_range != '[*:*]' or not panel.x_log or not places:
        return panel.x_range
    room = max((max(places) / min(places)) ** 0.03, 1.05)
    return f'[{min(places) / room:.6g}:{max(places) * room:.6g}]'


def script_of_panel(panel, number):
    lines = list(usable(panel))
    script = ['reset', f'set border 3 linecolor rgb "{INK}" linewidth 0.8',
              'set tics nomirror out scale 0.6',
              f'set grid xtics ytics linetype 1 linecolor rgb "{GRID}" linewidth 0.7',
              f'set xlabel {quoted(panel.x_label)}', f'set ylabel {quoted(panel.y_label)}',
              'unset key', 'set boxwidth 0.62', 'unset mxtics', 'set format y "%g"', 'set format x "%g"',
              f'set xrange {x_range_of(panel, lines)}', f'set yrange {panel.y_range}']
    if panel.title:
        script.append(f'set title {quoted(panel.title)} font ",15"')
    if panel.x_log:
        script.append('set logscale x')
    if panel.y_time:
        places = ', '.join(f'"{text}" 1e{power - 3}' for power, text in enumerate(TIMES))
        script += ['set logscale y', f'set ytics ({places})', 'set mytics 10']
    elif panel.y_log:
        script += ['set logscale y', 'set mytics 10']
    else:
        script.append('unset mytics')
    if panel.x_tics:
        script.append(f'set xtics ({panel.x_tics})')
    parts = []
    for index, line in enumerate(lines):
        name = f'd{number}_{index}'
        script += block(name, line)
        parts += drawn(name, line)
    if parts:
        script.append('plot ' + ', \\\n '.join(parts))
    else:
        script += ['set xrange [0:1]', 'set yrange [0:1]',
                   'set label "not measured" at graph 0.5, 0.5 center', 'plot NaN notitle']
    return script


def script_of(picture):
    count = len(picture.panels)
    width = 900 if count == 1 else 1020
    script = ['set encoding utf8',
              f'set terminal svg noenhanced size {width},{picture.height} dynamic '
              f'font "{FONT},13.5" background "#ffffff" rounded']
    if count > 1:
        script.append(f'set multiplot layout 1,{count} ')
    for number, panel in enumerate(picture.panels):
        script += script_of_panel(panel, number)
    if count > 1:
        script.append('unset multiplot')
    return '\n'.join(script) + '\n'


def draw(picture):
    """The picture as an <svg> element; RuntimeError says what gnuplot does not like."""
    done = subprocess.run(['gnuplot'], input=script_of(picture), capture_output=True, text=True,
                          timeout=SECONDS, check=False)
    svg = done.stdout[done.stdout.find('<svg'):]
    if done.returncode or not svg.startswith('<svg'):
        raise RuntimeError(f'gnuplot: {picture.name}: {done.stderr.strip() or "no picture"}')
    return own_names(svg.strip(), picture)


def own_names(svg, picture):
    """Many pictures in one page: names inside get the picture's in front, and the title is the picture's."""
    svg = re.sub(r'\b(id|class)="', rf'\1="{picture.name}-', svg)
    svg = re.sub(r"\bid='", f"id='{picture.name}-", svg)
    svg = re.sub(r"(href=['\"]#|url\(#)", rf'\1{picture.name}-', svg)
    svg = re.sub(r'<title>[^<]*</title>', f'<title>{picture.title}</title>', svg, count=1)
    svg = re.sub(r'<desc>[^<]*</desc>', '', svg, count=1)
    return re.sub(r'<title>(?:Gnuplot|gnuplot_plot_\w*)</title>', '', svg)
