"""Every Python example of the guides runs."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from aioqless import Client
from tests.guides.examples import Program, modules

BANK = """
class bank:
    class Unreachable(Exception): ...
    class NotReady(Exception): ...
    class Refused(Exception): ...
    async def charge(invoice, idempotency_key=None): return f"R-{invoice}"
"""
MAIL = """
async def send_mail(receipt): ...
async def download(url): ...
"""
PAGER = """
class pager:
    async def call(message): ...
import sys, types, contextlib
asyncpg = sys.modules["asyncpg"] = types.ModuleType("asyncpg")
class Pool:
    async def execute(self, statement, *values): ...
asyncpg.Pool = Pool
@contextlib.asynccontextmanager
async def create_pool(url):
    yield Pool()
asyncpg.create_pool = create_pool
"""
JOBS = """
# app/jobs.py
import aioqless

@aioqless.job
async def greet(job: aioqless.Job, name: str) -> None: ...
"""
GREET = """
import aioqless

@aioqless.job(klass="app.jobs.greet")
async def greet(job: aioqless.Job) -> None: ...
"""
DOWNLOAD = """
async def download(url, path): ...
"""
ENGINE = """
from sqlalchemy.ext.asyncio import create_async_engine
engine = create_async_engine("sqlite+aiosqlite://")
"""


ROWS = """
async def read(table, after):
    for row in range(after + 1, 4):
        yield row
async def send(row): ...
"""


MODEL = """
async def ask_model(question):
    for token in ("It ", "depends", "."):
        yield token
"""


EMBEDDINGS = """
import builtins
class api:
    async def embed(model, texts): return [[float(len(text))] for text in texts]
builtins.api = api
"""


class Page(NamedTuple):
    """What the examples of a page presuppose."""

    setup: str = ""
    worker: bool = True
    failures: frozenset[str] = frozenset()  # groups of the jobs that fail


KEY = """
import os
from aioqless.contrib.encryption import Encryption
os.environ["ENCRYPTION_KEY"] = Encryption.new_key()
"""
PAGES = {
    "archive.md": Page(),
    "bulk-handlers.md": Page(EMBEDDINGS),
    "configuration.md": Page(),
    "encryption.md": Page(KEY),
    "events.md": Page(GREET),
    "executors.md": Page(),
    "job-sets.md": Page(),
    "fair-turns.md": Page(worker=False),
    "foreign-queues.md": Page(),
    "guarantees.md": Page(BANK + PAGER, worker=False),
    "handlers.md": Page(),
    "high-availability.md": Page(),
    "limits.md": Page(),
    "locks.md": Page(BANK),
    "long-jobs.md": Page(ROWS),
    "signals.md": Page(),
    "calls.md": Page(),
    "managing-jobs.md": Page(),
    "middleware.md": Page(PAGER),
    "operating.md": Page(DOWNLOAD + "async def read_rates(): return {}\n"),
    "outbox.md": Page(ENGINE),
    "output.md": Page(MODEL),
    "putting.md": Page(),
    "queues.md": Page(),
    "recurring.md": Page(),
    "redis.md": Page(),
    "results.md": Page(),
    "retries.md": Page(BANK + MAIL),
    "scaling-out.md": Page(),
    "typing.md": Page(),
    "unique-jobs.md": Page(worker=False),
    "workers.md": Page(JOBS.lstrip()),
    "workflows.md": Page(failures=frozenset({"sold-out"})),
}


@pytest.mark.parametrize("name", PAGES)
async def test_examples_of_the_page_run(
    name: str, client: Client, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", client.namespace)
    page = PAGES[name]
    with modules():
        program = Program(client, page.setup, worker=page.worker)
        try:
            await program.run(name)
        finally:
            if engine := program.names.get("engine"):
                await engine.dispose()
    assert (await client.jobs.failed_counts()).keys() == page.failures
