"""The first page: how everything is just now; and all queues."""

from __future__ import annotations

from aioqless.contrib.dashboard.page_request import SIZE, Asked, Page
from aioqless.contrib.dashboard.sampler import FORGOTTEN, QueueNow, Sample

FIRST = 12  # queues on the first page
SORTS = ("trouble", "name", "waiting", "running", "scheduled", "completed", "failures")


async def overview(asked: Asked) -> Page:
    sample = await asked.board.sampler.fresh(asked.client)
    first = sorted(
        sample.queues, key=lambda queue: (queue.name not in sample.unserved, *trouble(queue))
    )[:FIRST]
    names = sorted(sample.failed, key=lambda name: -sample.failed[name])[:6]
    return Page(
        "overview.html",
        "Overview",
        {
            "queues": first,
            "groups": await asked.client.jobs.failures(*names) if names else [],
            "workers": await asked.client.workers.working(
                *[each["name"] for each in sample.workers[:6]], most=1
            ),
            "rates": asked.board.sampler.rates(),
            "rates_of": asked.board.sampler.rates,
            "problems": problems(sample),
        },
    )


async def queues(asked: Asked) -> Page:
    sample = await asked.board.sampler.fresh(asked.client)
    wanted, sort = asked.text("q").lower(), asked.one_of("sort", SORTS)
    found = [each for each in sample.queues if wanted in each.name.lower()]
    if sort == "trouble":
        found.sort(key=lambda queue: (queue.name not in sample.unserved, *trouble(queue)))
    elif sort == "name":
        found.sort(key=lambda each: each.name.lower())
    else:
        found.sort(key=lambda each: (-getattr(each, sort), each.name))
    page = found[asked.offset : asked.offset + SIZE]
    return Page(
        "queues.html",
        "Queues",
        {
            "queues": page,
            "total": len(found),
            "wanted": asked.text("q"),
            "sort": sort,
            "sorts": SORTS,
            "rates_of": asked.board.sampler.rates,
        },
    )


def trouble(queue: QueueNow) -> tuple[object, ...]:
    """What somebody should look at comes first: stalled jobs, then paused queues with work, then
    the longest line."""
    return (
        -queue.stalled,
        not (queue.paused and queue.waiting),
        -queue.waiting,
        -queue.running,
        -queue.completed,
        queue.name,
    )


def problems(sample: Sample) -> list[tuple[str, str, str]]:
    """What is wrong, with what to do about it and where: (what, advice, address)."""
    found, health = [], sample.health
    if not sample.workers and sample.sum("waiting"):
        found.append(
            (
                "Jobs wait, and no worker is there.",
                "Start one: python -m aioqless worker your.module -q QUEUE",
                "/workers",
            )
        )
    elif sample.unserved:
        told = f"Jobs wait, and no worker takes them: {_some(list(sample.unserved))}."
        found.append((told, "Does a worker serve these queues?", "/queues"))
    if lost := [name for name, seen in sample.lost.items() if seen > sample.when - FORGOTTEN]:
        told = f"Disappeared without stopping: {_some(lost)}."
        found.append(
            (
                told,
                "Was it killed? Another worker takes its jobs when their locks expire.",
                "/workers",
            )
        )
    if stalled := [queue.name for queue in sample.queues if queue.stalled]:
        told = f"{sample.sum('stalled'):,} stalled in {_some(stalled)}: their workers were silent for too long."
        found.append(
            (told, "The next pop from there hands them to another worker: is there one?", "/queues")
        )
    if paused := [
        queue.name for queue in sample.queues if queue.paused and (queue.waiting or queue.stalled)
    ]:
        found.append(
            (f"Paused, with jobs waiting: {_some(paused)}.", "Unpause it to go on.", "/queues")
        )
    if health.memory_limit and health.memory > 0.9 * health.memory_limit:
        found.append(
            (
                "Redis is nearly full.",
                "Put is refused when it is: raise maxmemory, or work jobs off.",
                "/redis",
            )
        )
    if health.memory_limit and health.policy != "noeviction":
        found.append(
            (
                f"Redis may throw jobs away: its policy is {health.policy}.",
                "Set maxmemory-policy to noeviction.",
                "/redis",
            )
        )
    if not health.saved:
        found.append(
            (
                "Redis failed to write to its disk.",
                "Look at its log: jobs may be lost when it ends.",
                "/redis",
            )
        )
    if sample.unread:
        found.append(
            (
                f"{sample.unread[0].upper()}{sample.unread[1:]}.",
                "Or turn it off, if nobody wants it.",
                "/config",
            )
        )
    return found


def _some(names: list[str]) -> str:
    shown = [name if len(name) <= 60 else name[:59] + "…" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
