"""The agent: each call of the model and of a tool is a step, and a mail needs an approval."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import aioqless
from aioqless import Job

MOST_TURNS = 10
Messages = list[dict[str, str]]


@dataclass
class Approval:
    """What a person says to a mail."""

    ok: bool
    by: str


@aioqless.job(queue="agents", retry_on=OSError, result_ttl=3600)
async def research(job: Job, question: str, model: str) -> str:
    """Do what the model says until it ends."""
    messages: Messages = [{"role": "user", "text": question}]
    for turn in range(MOST_TURNS):
        action = await job.step(f"model {turn}", ask, model, messages)
        if not action["tool"]:
            return str(action["text"])
        if action["tool"] == "search":
            found = await job.step(f"search {turn}", search, action["text"])
        else:
            found = await send_if_approved(job, turn, action["text"])
        messages.append({"role": "tool", "text": found})
    raise aioqless.Fail(f"no answer after {MOST_TURNS} turns")


async def send_if_approved(job: Job, turn: int, text: str) -> str:
    """Wait for a person's approval, which may take days and holds no slot."""
    approval = await job.wait_for(f"approval {turn}", Approval)
    if not approval.ok:
        return f"{approval.by} said no"
    return await job.step(f"mail {turn}", send, text)


def ask(url: str, messages: Messages) -> dict[str, Any]:
    """Call the model: a plain function, which runs in a thread."""
    request = Request(url, json.dumps({"messages": messages}).encode())
    with build_opener(ProxyHandler({})).open(request, timeout=30) as response:
        action: dict[str, Any] = json.load(response)
        return action


async def search(text: str) -> str:
    """Search the web; this one knows little."""
    return f"{text}: many"


async def send(text: str) -> str:
    """Send a mail; this one prints it."""
    print(text)
    return "sent"
