"""The report: one HTML file with everything in it, to be looked at, sent and kept.

report_data.py  its numbers, from the tables
theme.py     its colours, by day and by night; SVG that follows them
charts.py    a function for each chart: numbers in, SVG out
page.py      the page, of numbers and charts
page.html    its template
"""

from aioqless.contrib.lake.report.page import page
from aioqless.contrib.lake.report.report_data import Gathered, gather

__all__ = ["Gathered", "gather", "page"]
