"""Run the Python examples of a page, in order, as one program."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from aioqless import Client, Handler, Settings, Worker
from aioqless.testing import run_jobs
from tests.pages import ROOT, blocks

PATIENCE = 60.0  # seconds for one block
_FILE = re.compile(r"# ([\w/]+)\.py\n")
_AWAITS = (ast.Await, ast.AsyncWith, ast.AsyncFor)


@contextmanager
def modules() -> Iterator[None]:
    """Forget modules that an example has defined."""
    known = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - known:
            if getattr(sys.modules[name], "__file__", None) is None:
                del sys.modules[name]


class Program:
    """The examples of a page, which share their names.

    A block that starts with `# app/jobs.py` is that module; the blocks after it have its names,
    too. Coroutines may be awaited at the top level: from the first `await` of a block on, a worker
    serves the handlers so far.

    Args:
        client: Its name in the examples is `client`, and it is the current one.
        setup: Code that the page presupposes.
        worker: Run a worker.
    """

    def __init__(self, client: Client, setup: str = "", *, worker: bool = True) -> None:
        self._client = client
        self._worker = worker
        self._module = types.ModuleType("guide")
        sys.modules["guide"] = self._module
        self.names = vars(self._module)
        self._setup = setup

    async def run(self, page: str) -> None:
        """Run all blocks of a page, and the jobs that are ready then."""
        for block in filter(None, [self._setup, *blocks(ROOT / "docs" / page, "python")]):
            self.names["client"] = self._client
            names = self._names_of(block)
            with self._client.as_current():
                await self._run(block, page, names)
            self.names.update({name: each for name, each in names.items() if name[:2] != "__"})
        if self._has_handlers():
            await run_jobs(self._client, self._module)

    def _has_handlers(self) -> bool:
        return self._worker and any(isinstance(each, Handler) for each in self.names.values())

    async def _run(self, block: str, page: str, names: dict[str, Any]) -> None:
        body = ast.parse(block).body
        first = next((number for number, each in enumerate(body) if _awaits(each)), len(body))
        # in a thread, where a synchronous client may be called
        await asyncio.to_thread(exec, _compile(body[:first], page), names)
        if body[first:]:
            async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE):
                if self._has_handlers():
                    settings = Settings(queues=["default", "*"], shutdown_timeout=0)
                    worker = Worker(self._client, self._module, settings=settings)
                    await stack.enter_async_context(worker)
                await eval(_compile(body[first:], page), names)

    def _names_of(self, block: str) -> dict[str, Any]:
        """Return the names in which a block runs: those of its own module if it names a file."""
        if not (file := _FILE.match(block)):
            return self.names
        name = file[1].replace("/", ".")
        package, _, last = name.rpartition(".")
        if package and package not in sys.modules:
            sys.modules[package] = types.ModuleType(package)
        module = sys.modules[name] = types.ModuleType(name)
        if package:
            setattr(sys.modules[package], last, module)
        return vars(module)


def _awaits(statement: ast.stmt) -> bool:
    """Return whether a statement needs the event loop, outside of functions that it defines."""
    if isinstance(statement, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef):
        return False
    return any(
        isinstance(each, _AWAITS) or getattr(each, "attr", None) == "create_task"
        for each in ast.walk(statement)
    )


def _compile(body: Sequence[ast.stmt], page: str) -> types.CodeType:
    return compile(
        ast.Module(list(body), []), page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
