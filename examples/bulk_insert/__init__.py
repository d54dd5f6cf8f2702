"""Insert rows that come one by one: each is a job, and a hundred go into one statement.

`python -m examples.bulk_insert` puts 1,000 rows, some of which the database refuses, inserts them
into an SQLite database, and prints in how many bulks.

jobs.py       the handler
__main__.py   puts the rows, and runs a worker
"""
