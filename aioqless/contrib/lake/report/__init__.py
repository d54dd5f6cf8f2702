"""The report: one HTML file with everything in it, to be looked at, sent and kept.

report_data.py  its numbers, from the tables
charts.py       a function for each chart: numbers in, a Vega-Lite chart out; colors
page.py         the page, of numbers and charts
page.html       its template
page.js         draws the charts by Vega, which is in the page
"""

from aioqless.contrib.lake.report.page import render
from aioqless.contrib.lake.report.report_data import Report, read_report

__all__ = ["Report", "read_report", "render"]
