"""Several people review docstrings of the standard library: machine, person, machine.

    python -m examples.review_desk               # open the printed link in two windows
    python -m examples.review_desk --limit 20    # 20 seconds per item: reservations expire

Start with app.py: the task queue, its API, the page, and a worker for the automatic steps.
jobs.py has those steps, library.py the items, static/ the page's script, which needs no build.
"""
