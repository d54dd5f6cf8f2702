"""Charts that the server draws, as SVG in the colors of the stylesheet, each with a string label.

sparklines.py        sparklines: recent rates, memory, and failures of the last day
bars.py              values over time, histograms, and the totals of the last days
timeline.py          a job's life as a strip of waiting and running
dependency_graph.py  what a job depends on, and its dependents
"""

from aioqless.contrib.dashboard.charts.bars import fortnight, histogram, over_time
from aioqless.contrib.dashboard.charts.dependency_graph import graph
from aioqless.contrib.dashboard.charts.sparklines import (
    hourly_failures,
    memory_line,
    sparkline,
    trend,
)
from aioqless.contrib.dashboard.charts.timeline import strip

__all__ = [
    "fortnight", "graph", "histogram", "hourly_failures", "memory_line", "over_time", "sparkline",
    "strip", "trend",
]  # fmt: skip
