"""Pictures that the server draws, as SVG whose colours are the stylesheet's. Each says in words
what it shows.

lines.py     sparklines: how something was lately
bars.py      histograms, and the days of a fortnight
stages.py    a job's life as a strip: waiting, running
graph.py     what a job waits for, and what waits for it
"""

from aioqless.contrib.dashboard.charts.bars import fortnight, histogram
from aioqless.contrib.dashboard.charts.graph import graph
from aioqless.contrib.dashboard.charts.lines import sparkline, trend
from aioqless.contrib.dashboard.charts.timeline import strip

__all__ = ["fortnight", "graph", "histogram", "sparkline", "strip", "trend"]
