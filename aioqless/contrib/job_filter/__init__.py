"""Finds jobs by a filter, as `client.jobs.filter`, the command line and the dashboard do.

language.py    JobFilter    the words of a filter
search.py                   searches a portion of the jobs
"""

from aioqless.contrib.job_filter.language import (
    KEYS,
    MAX_ADDED,
    MAX_CONDITIONS,
    STATES,
    Condition,
    JobFilter,
    Text,
)
from aioqless.contrib.job_filter.search import search

__all__ = [
    "KEYS", "MAX_ADDED", "MAX_CONDITIONS", "STATES", "Condition", "JobFilter", "Text", "search",
]  # fmt: skip
