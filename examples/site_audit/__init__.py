"""Audit a website: every page is a job, and the report is a job that depends on all of them.

    python -m examples.site_audit    # interrupt it, even with kill -9: it continues when run again

The site is this Python's own documentation, served by pydoc. Start with pages.py: jids made of
addresses, so that no page is visited twice; a report that depends on pages while they are found;
priorities and tags; errors to retry, to fail for, or to report. report.py reads the data of the
jobs. __main__.py embeds a worker. website.py serves and parses HTML, without queues.
"""
