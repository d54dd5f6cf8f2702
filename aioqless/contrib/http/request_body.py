"""Reads the body of a request, with limits of size and time."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

BODY_TIMEOUT = 60.0  # seconds


async def read_body(request: Request, max_size: int, timeout: float = BODY_TIMEOUT) -> bytes | None:
    """Read the body of a request; None for more than `max_size` bytes, of which no more is read.

    Raises:
        TimeoutError: The body is not complete within `timeout` seconds, or breaks off.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(timeout):
            async for part in request.stream():
                body += part
                if len(body) > max_size:
                    return None
    except ClientDisconnect:
        raise TimeoutError("the client has closed the connection") from None
    return bytes(body)
