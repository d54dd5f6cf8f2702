"""Pictures that the server draws, as SVG whose colours are the stylesheet's. Each says in words what it shows.

lines.py     sparklines: how something was lately
bars.py      histograms, and the days of a fortnight
stages.py    a job's life as a strip: waiting, running
graph.py     what a job waits for, and what waits for it
"""

from aioqless.web.drawing.bars import fortnight, histogram
from aioqless.web.drawing.graph import graph
from aioqless.web.drawing.lines import sparkline, trend
from aioqless.web.drawing.stages import strip

__all__ = ["fortnight", "graph", "histogram", "sparkline", "strip", "trend"]
