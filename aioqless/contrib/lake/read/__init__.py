"""Questions to the lake, answered by DuckDB from finished tables; nothing here writes.

database.py  a database in memory that knows the tables and views of a lake
sql/         views, checks and statistics
statistics.py  how long jobs waited and ran and how they ended, over some days
report/      a page of charts and tables
freshness.py how far the tables are behind the events
job_search.py  finds ended jobs
reconciliation.py  compares tables with events, and with Redis
"""
