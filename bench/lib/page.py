# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The page of a report: pictures, the figures behind them, machine, versions, and how to make it again. One file
that needs nothing else, and no script.
"""
import html

import gnuplot

STYLE = '''
:root { color-scheme: light; }
body { margin: 0 auto; padding: 2.5rem 1.5rem; max-width: 1060px; background: #fcfcfb; color: #222;
       font: 16px/1.55 system-ui, "Helvetica Neue", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; }
h2 { font-size: 1.2rem; margin: 0 0 .3rem; }
h2:not(:first-child) { margin-top: 1.4rem; } figure h2 { margin-top: 0; }
p { margin: .3rem 0 .8rem; }
.machine { color: #555; }
figure { margin: 2rem 0; padding: 1.2rem 1.4rem 1rem; background: #fff; border: 1px solid #e3e3e0;
         border-radius: 8px; }
figure svg { display: block; width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; margin: .5rem 0 .4rem; font-size: .92rem; }
.legend svg { display: inline-block; width: 44px; height: 12px; vertical-align: middle;
              margin-right: .45rem; }
figcaption { color: #444; font-size: .95rem; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .18rem .8rem; text-align: right; border-bottom: 1px solid #eee; }
th { font-weight: 600; } th:first-child, td:first-child { text-align: left; }
details { margin-top: .6rem; font-size: .95rem; } summary { cursor: pointer; color: #0072b2; }
.facts td { text-align: left; } pre, code { font-size: .88rem; }
pre { background: #f4f4f2; padding: .7rem 1rem; border-radius: 6px; overflow-x: auto; }
.note { background: #fff6e0; border: 1px solid #f0dca8; border-radius: 6px; padding: .6rem 1rem; }
'''


def cell(value):
    if value is None:
        return ''
    if isinstance(value, str):
        return html.escape(value)
    if value == int(value) and abs(value) < 1e9:
        return f'{int(value):,}'
    return f'{value:,.0f}' if abs(value) >= 1000 else f'{value:.4g}'


def table(head, rows, kind=''):
    shown = ''.join(f'<th>{html.escape(text)}</th>' for text in head)
    body = ''.join('<tr>' + ''.join(f'<td>{cell(value)}</td>' for value in row) + '</tr>'
                   for row in rows)
    return f'<table{kind}>' + (f'<tr>{shown}</tr>' if shown else '') + f'{body}</table>'


def table_of_panel(panel):
    """The figures behind a pair of axes, by their place on the first."""
    lines = panel.lines
    if any(line.bars for line in lines):
        return table(['', panel.y_label], [(line.label, line.points[0][1]) for line in lines])
    places = sorted({point[0] for line in lines for point in line.points})
    values = [{point[0]: point[1] for point in line.points} for line in lines]
    rows = [(place, *(value.get(place) for value in values)) for place in places]
    label = ', '.join([part for part in (panel.title, panel.y_label) if part] +
                      (['µs'] if panel.y_time else []))
    return f'<p>{html.escape(label)}</p>' + table([panel.x_label, *(line.label for line in lines)], rows)


def pairs_of_panel(panel):
    """Where both axes are measured, a curve is a list of pairs."""
    return ''.join(f'<p>{html.escape(line.label)}</p>' +
                   table([panel.x_label, panel.y_label], [point[:2] for point in line.points])
                   for line in panel.lines)


def mark(line):
    """As gnuplot draws it, in the middle of a sample of 44 x 12."""
    shapes = {7: '<circle cx="22" cy="6" r="4"/>', 5: '<path d="M18 2h8v8h-8z"/>',
              9: '<path d="M22 1l5 9h-10z"/>', 13: '<path d="M22 1l5 5l-5 5l-5-5z"/>'}
    return shapes.get(line.mark, '')


def legend(picture):
    shown = []
    for line in picture.samples():
        dashes = line.dash.strip('()')
        dash = f' stroke-dasharray="{dashes}"' if dashes else ''
        shown.append(f'<span><svg viewBox="0 0 44 12" fill="{line.colour}" aria-hidden="true"><path '
                     f'd="M0 6h44" stroke="{line.colour}" stroke-width="2.4"{dash}/>{mark(line)}'
                     f'</svg>{html.escape(line.label)}</span>')
    return f'<div class="legend">{"".join(shown)}</div>' if shown else ''


def figure(picture):
    if picture.name == 'availability':
        tables = ''.join(pairs_of_panel(panel) for panel in picture.panels)
    else:
        tables = ''.join(table_of_panel(panel) for panel in picture.panels)
    return (f'<figure id="{picture.name}" data-colours="{" ".join(picture.colours())}">'
            f'<h2>{html.escape(picture.title)}</h2>'
            f'<figcaption>{html.escape(picture.says)}</figcaption>'
            f'{legend(picture)}{gnuplot.draw(picture)}'
            f'<details><summary>the figures</summary>{tables}</details></figure>')


def facts(report):
    machine = report['machine']
    rows = [('date', report['date'].replace('T', ' ')),
            ('machine', machine['class']),
            ('caches', machine['caches']),
            ('system', f'{machine["system"]}, Linux {machine["kernel"]}, {machine["architecture"]}'),
            ('compiler', machine['compiler']),
            ('Postern', machine['postern']),
            ('compared', ', '.join(mpi['title'] for mpi in report['mpis'])),
            ('cores used', ', '.join(map(str, report['cores']))),
            ('rounds', str(report['rounds'])),
            ('load average', f'{report["load"]:.1f} at the beginning')]
    started = [f'{mpi["title"]}: {" ".join(mpi["launch"])}' for mpi in report['mpis']]
    return (table([], [row for row in rows if row[1]], ' class="facts"') +
            '<h2>How each was started</h2><pre>' + html.escape('\n'.join(started)) + '</pre>')


def notes(report):
    said = []
    if report['load'] > 0.5:
        said.append('Other work was running on this machine when the measurement began; the figures '
                    'show that as well.')
    if report.get('quick'):
        said.append('This was a short run, to see whether all works; its figures are worth little.')
    titles = {mpi['name']: mpi['title'] for mpi in report['mpis']}
    said += [f'{titles.get(one["mpi"], one["mpi"])}, {one["what"]}, round {one["round"]}: {one["why"]}. ' +
             (f'Repeated, it failed again: {one["again"]}.' if one['again'] else
              'Repeated, it went well.') for one in report.get('failures', [])]
    said += [f'{titles.get(one["mpi"], one["mpi"])}, {one["program"]}: {one["why"]}; left out from there on.'
             for one in report['left_out']]
    return ''.join(f'<p class="note">{html.escape(text)}</p>' for text in said)


def page(report, pictures):
    machine = report['machine']
    date = report['date'][:10]
    again = './dev report\nbench/report --help\nbench/compare OLD.json NEW.json'
    return f'''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postern: performance, {date}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Postern: performance</h1>
<p class="machine">{html.escape(date)} · {html.escape(machine['class'])} ·
Postern {html.escape(machine['postern'])}</p>
<p>Two processes on two cores of one machine, unless ranks are counted. All layers were measured in turn, round by
round, so that what the machine did meanwhile met all of them; a curve is the median of the rounds, the pale band
around it goes from the least to the most.</p>
{notes(report)}
{"".join(figure(picture) for picture in pictures)}
<h2>Where and with what</h2>
{facts(report)}
<h2>Once more</h2>
<pre>{html.escape(again)}</pre>
<p>The first makes this page and <code>report.json</code> beside it anew, the last tells what changed between two of
them from noise. doc/performance.md explains each picture and what limits us.</p>
</body>
</html>
'''
