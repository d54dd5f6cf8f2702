"""The report: one HTML file with everything in it, to be looked at, sent and kept.

report_data.py  its numbers, from the tables
theme.py        its colors in light and dark mode, and SVG that follows them
charts.py       a function for each chart: numbers in, SVG out
page.py         the page, of numbers and charts
page.html       its template
"""

from aioqless.contrib.lake.report.page import render
from aioqless.contrib.lake.report.report_data import Report, read_report

__all__ = ["Report", "read_report", "render"]
