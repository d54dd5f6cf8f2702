"""Import files of several customers: each row is a job, and the customers start them in turns.

`python -m examples.fair_import` imports the same files with and without turns, and draws how long
the rows of each customer waited into fair-turns.svg.

jobs.py       the handlers
picture.py    the picture, as SVG
__main__.py   puts the files, and runs a worker
"""
