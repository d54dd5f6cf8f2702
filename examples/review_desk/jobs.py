"""The automatic steps: one prepares an item, one stores what a person answered."""

from __future__ import annotations

from dataclasses import asdict

import aioqless

from . import library

READ, REVIEW, COUNT = "docs-read", "docs-review", "docs-count"  # machine, person, machine


@aioqless.job(klass="Docstring", retries=3)
def docstring(job: aioqless.Job, name: str) -> aioqless.Next | None:
    """Pass through all three queues, adding data in each."""
    if job.queue == READ:
        entry = library.entry(name)
        job.data |= asdict(entry) | {"guess": library.guess(entry)}
        return aioqless.Next(REVIEW)
    job.data["agreed"] = job.data["answer"]["label"] == job.data["guess"]
    return None
