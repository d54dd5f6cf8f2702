"""Audit a website: every page is a job, and the report is a job that depends on all of them.

    python -m examples.site_audit          # interrupt it when you like, even with kill -9: run again, it goes on

The site is this Python's own documentation as pydoc serves it. pages.py is the place to begin: jids
made of addresses, so that no page is visited twice; a report that waits for pages while they are
being found; priorities and tags; what to retry, what to give up and what is a finding. report.py
reads what the jobs brought home. __main__.py has a worker within a program of your own. website.py
serves and reads HTML and has nothing to do with queues."""
