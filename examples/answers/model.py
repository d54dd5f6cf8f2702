"""A model that answers over HTTP, one word at a time. It knows nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

PAUSE = 0.04  # seconds between two words


def compose(question: str) -> list[str]:
    """Return the words of an answer."""
    words = question.strip(" ?").split() or ["nothing"]
    lines = [f"{number}. About {word}: it depends." for number, word in enumerate(words * 6, 1)]
    return [f"{word} " for word in " ".join(lines).split()]


async def answer(request: Request) -> StreamingResponse:
    """Stream an answer."""

    async def stream() -> AsyncIterator[str]:
        for word in compose(request.query_params["question"]):
            yield word
            await asyncio.sleep(PAUSE)

    return StreamingResponse(stream(), media_type="text/plain")


app = Starlette(routes=[Route("/answer", answer)])
