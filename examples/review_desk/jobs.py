"""The machines' part: one reads what is to be judged, one takes over what a person has judged."""

from __future__ import annotations

from dataclasses import asdict

import aioqless

from . import library

READ, REVIEW, COUNT = "docs-read", "docs-review", "docs-count"  # machine, person, machine


@aioqless.job(klass="Docstring", retries=3)
def docstring(job: aioqless.Job, name: str) -> aioqless.Next | None:
    """One job goes through all three queues; its data grow on the way."""
    if job.queue == READ:
        entry = library.entry(name)
        job.data |= asdict(entry) | {"guess": library.guess(entry)}
        return aioqless.Next(REVIEW)
    job.data["agreed"] = job.data["answer"]["label"] == job.data["guess"]
    return None
