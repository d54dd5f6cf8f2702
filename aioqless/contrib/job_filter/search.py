"""Searches a portion of the jobs; a cursor says where the next one continues."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from aioqless.client.job.backend import JobBackend
from aioqless.client.job.summaries import SearchPage
from aioqless.contrib.job_filter.language import MAX_ADDED, MAX_CONDITIONS, JobFilter


async def search(
    backend: JobBackend, text: str, *, cursor: str, stop: str, count: int
) -> SearchPage:
    """Search a portion; see `Jobs.search`."""
    store, wanted = backend.store, JobFilter.parse(text, MAX_CONDITIONS + MAX_ADDED)
    counts, at = _read_cursor(cursor)
    page = await store.find(
        conditions=wanted.encode(await store.now()),
        cursor=at,
        stop=_read_cursor(stop)[1],
        count=count,
    )
    more = [page["searched"], page["total"], page["unsearched"], len(page["found"])]
    counts = [before + each for before, each in zip(counts, more, strict=True)]
    searched, total, unsearched, found = counts
    return SearchPage(
        jids=page["found"],
        searched=searched,
        total=max(total, searched),
        unsearched=unsearched,
        found=found,
        cursor="" if page["cursor"] == "0" else _write_cursor(counts, page["cursor"]),
    )


def _write_cursor(counts: list[int], at: str) -> str:
    """Return the counts until now and the cursor of the command as one string for addresses."""
    return urlsafe_b64encode(json.dumps([counts, at]).encode()).decode()


def _read_cursor(text: str) -> tuple[list[int], str]:
    if not text:
        return [0, 0, 0, 0], ""
    try:
        counts, at = json.loads(urlsafe_b64decode(text))
        searched, total, unsearched, found = map(int, counts)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise ValueError(f"{text[:80]!r} is not a cursor of a search") from None
    return [searched, total, unsearched, found], str(at)
