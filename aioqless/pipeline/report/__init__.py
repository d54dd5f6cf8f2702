"""The report: one HTML file with everything in it, to be looked at, sent and kept.

gathered.py  the numbers it shows, out of the tables
theme.py     its colours, by day and by night; SVG that follows them
charts.py    a function for each chart: numbers in, SVG out
page.py      the page, of numbers and charts
page.html    its template
"""

from aioqless.pipeline.report.gathered import Gathered, gather
from aioqless.pipeline.report.page import page

__all__ = ["Gathered", "gather", "page"]
