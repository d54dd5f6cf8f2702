"""Steps that tests of the dashboard share."""

from __future__ import annotations

import re

import httpx


async def token(http: httpx.AsyncClient, path: str = "/config") -> str:
    """Return the CSRF token of this browser's forms."""
    answer = await http.get(path)
    found = re.search(r'name="token" value="([^"]+)"', answer.text)
    assert found, answer.text
    return found[1]


async def do(http: httpx.AsyncClient, act: str, **form: str) -> str:
    """Press a button; returns the flash message."""
    answer = await http.post(f"/do/{act}", data={"token": await token(http), "back": "/", **form})
    assert answer.status_code == 303, answer.text
    html = (await http.get(http.base_url.join(answer.headers["location"]))).text
    found = re.search(r'<p class="note (\w+)">(.*?)</p>', html, re.DOTALL)
    assert found, html
    return f"{found[1]}: {found[2]}"
