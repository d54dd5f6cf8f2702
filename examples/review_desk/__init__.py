"""Several people review what Python's standard library says of its functions: a machine reads it, a
person judges, a machine counts.

    python -m examples.review_desk                      # then open the link that it prints in two windows
    python -m examples.review_desk --limit 20           # with 20 seconds for each, to see time run out

app.py is the place to begin: the desk, its API, the page, and a worker for the machines' part.
jobs.py has that part, library.py the items.
static/ is all that browsers run, without a build.
"""
