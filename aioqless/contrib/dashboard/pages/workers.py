"""Workers: who they are, and what each is doing now."""

from __future__ import annotations

from aioqless.client.workers import Workers
from aioqless.contrib.dashboard.page_request import Asked, Page
from aioqless.errors import NoSuchWorker, NotObeyed

PAGE = 50
HELD = 100


async def workers(asked: Asked) -> Page:
    sample = await asked.board.sampler.fresh(asked.client)
    wanted = asked.text("q").lower()
    names = [each["name"] for each in sample.workers if wanted in each["name"].lower()]
    page = names[asked.offset : asked.offset + PAGE]
    values = {
        "workers": await asked.client.workers.working(*page, most=2) if page else [],
        "total": len(names),
        "wanted": asked.text("q"),
        "now": sample.when,
    }
    return Page("workers.html", "Workers", values)


async def worker(asked: Asked) -> Page:
    name = asked.text("name")
    if not name:
        raise KeyError(name)
    (worker,) = await asked.client.workers.working(name, most=HELD)
    if (
        asked.client is asked.board.client
    ):  # asking takes a subscription: not for each look of a page that is live
        asked.board.served[name] = await _serves(asked, name)
    return Page(
        "worker.html",
        f"{name} · worker",
        {"worker": worker, "serves": asked.board.served.get(name)},
    )


async def _serves(asked: Asked, name: str) -> dict[str, object] | None:
    """What it says of itself; None for one that doesn't listen, such as another qless client's."""
    ((_, listening),) = await asked.client.redis.pubsub_numsub(f"{asked.client.namespace}:w:{name}")
    if not listening:
        return None
    try:
        return await Workers(asked.client.redis, asked.client.store, patience=0.5).show(name)
    except (NoSuchWorker, NotObeyed):
        return None
