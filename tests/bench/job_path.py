"""How much code one job passes, from `await greet.put(...)` to its stored completion.

`python -m tests.bench.job_path [--list]` puts and works jobs on a Redis of its own. It counts the
functions of the package that run for every traced job, with all their lines (docstrings included)
and their statements (which don't depend on the format), and the Lua commands that are called. Code
that runs once at the start, in other threads (the lock renewer) or by a timer is not counted. An
idle worker takes the job: its way includes the wake-up by a message, and logging.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import hashlib
import io
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import redis

import aioqless
from aioqless import Client, Job, Settings, Worker, job
from aioqless.store.command_header import command_names
from aioqless.store.script_composer import compose
from aioqless.testing import server

PACKAGE = Path(aioqless.__file__).parent
WARM_UP = 5  # jobs until everything that is made once is there
TRACED = 5  # jobs; what runs by a timer is not met by all of them
PATIENCE = 300  # seconds without a command: with a profile, all is slow


@dataclass(frozen=True, order=True)
class Function:
    """A function of the package, with the lines from its first decorator to its end."""

    file: str
    first: int
    last: int
    name: str
    statements: frozenset[tuple[int, int]]  # by line and column; without docstrings


@dataclass(frozen=True)
class Leg:
    """A part of the way: the functions that all traced jobs passed, and the Lua commands."""

    name: str
    functions: frozenset[Function]
    commands: frozenset[str]

    @property
    def files(self) -> int:
        return len({function.file for function in self.functions})

    @property
    def statements(self) -> int:
        return len({(each.file, where) for each in self.functions for where in each.statements})

    @property
    def lines(self) -> int:
        """Lines of a function that is defined in another one count once."""
        return len(
            {
                (function.file, line)
                for function in self.functions
                for line in range(function.first, function.last + 1)
            }
        )


@cache
def _functions_of(file: str) -> dict[tuple[str, int], Function]:
    """Return the functions of a file by name and first line, as code objects have them."""
    found = {}
    for node in ast.walk(ast.parse(Path(file).read_text())):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                name, decorators = node.name, node.decorator_list
            case ast.Lambda():
                name, decorators = "<lambda>", []
            case _:
                continue
        first = min([node.lineno, *(each.lineno for each in decorators)])
        path = str(Path(file).relative_to(PACKAGE))
        statements = frozenset(_statements(node))
        found[name, first] = Function(path, first, node.end_lineno or first, name, statements)
    return found


def _statements(function: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(function):
        match node:
            case ast.Expr(value=ast.Constant()):
                pass  # a docstring
            case ast.stmt() | ast.Lambda():
                yield node.lineno, node.col_offset


def _function_of(code: CodeType) -> Function | None:
    """Return the function of a code object; a comprehension belongs to the function around it."""
    if not code.co_filename.startswith(f"{PACKAGE}/"):
        return None
    return _functions_of(code.co_filename).get((code.co_name, code.co_firstlineno))


@contextmanager
def _profiled() -> Iterator[set[Function]]:
    """Collect the functions of the package that this thread calls."""
    called: set[CodeType] = set()
    functions: set[Function] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    sys.setprofile(profile)
    try:
        yield functions
    finally:
        sys.setprofile(None)
        functions.update(filter(None, map(_function_of, called)))


class Monitor:
    """Sees which scripts Redis is asked to run."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        texts = {name: compose(name, namespace).text.encode() for name in command_names()}
        self._names = {hashlib.sha1(text).hexdigest(): name for name, text in texts.items()}

    @contextmanager
    def commands(self) -> Iterator[set[str]]:
        """Collect the names of the commands that are called while the block runs."""
        found: set[str] = set()
        patient = redis.Redis.from_url(self._url, socket_timeout=PATIENCE)
        with patient as client, client.monitor() as monitor:

            def listen() -> None:
                for seen in monitor.listen():
                    words = seen["command"].split()
                    if words[0] == "ECHO":
                        return
                    if words[0].upper() == "EVALSHA":
                        found.add(self._names[words[1]])

            thread = threading.Thread(target=listen)
            thread.start()
            yield found
            client.echo("end")
            thread.join()


class Producer:
    """Puts jobs and waits for them on an event loop in another thread, which is not profiled."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = Client(url)

    async def _in_thread(self, call: Callable[[], object]) -> None:
        async def awaited() -> None:
            await call()  # type: ignore[misc]  # a coroutine function that returns anything

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(awaited(), self._loop))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Producer]:
        await self._in_thread(self._client.__aenter__)
        yield self
        await self._in_thread(lambda: self._client.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def put_and_wait(self) -> None:
        """Put one job and return when it is complete."""

        async def put_and_wait() -> None:
            client = self._client
            with client.as_current():
                jid = await greet.put(name="ann")
            key = f"{client.namespace}:j:{jid}"
            # A subscription or a command would be among what is counted.
            while await client.redis.hget(key, "state") != b"complete":  # noqa: ASYNC110  # as above
                await asyncio.sleep(0.001)

        await self._in_thread(put_and_wait)
        await asyncio.sleep(0.05)  # the worker waits for the next job


@job(klass="greet")  # a klass of this main script would be refused
async def greet(job: Job, name: str) -> None:
    pass


async def trace(url: str) -> list[Leg]:
    """Return both legs of a job's way."""
    async with Client(url) as client:
        monitor = Monitor(url, client.namespace)
        ways: list[set[Function]] = []
        for number in range(WARM_UP + TRACED):
            with monitor.commands() as put_commands, _profiled() as functions:
                await greet.put(name="ann")
            ways += [functions] if number >= WARM_UP else []
        put = Leg("put", frozenset(set.intersection(*ways)), frozenset(put_commands))
        ways.clear()
        async with (
            Worker(client, greet, settings=Settings(poll=60)),
            Producer(url).open() as producer,
        ):
            for number in range(WARM_UP + TRACED):
                with monitor.commands() as commands, _profiled() as functions:
                    await producer.put_and_wait()
                ways += [functions] if number >= WARM_UP else []
    stored = frozenset(set.intersection(*ways))
    return [put, Leg("pop to stored", stored, frozenset(commands) - put.commands)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.job_path", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the functions, too")
    listed = parser.parse_args().list
    with server() as url, contextlib.redirect_stdout(io.StringIO()):  # of log lines
        put, stored = asyncio.run(trace(url))
    whole = Leg("both", put.functions | stored.functions, put.commands | stored.commands)
    print(f"{'':14} {'files':>6} {'functions':>10} {'lines':>6} {'statements':>11}  Lua commands")
    for leg in (put, stored, whole):
        commands = ", ".join(sorted(leg.commands))
        figures = f"{leg.files:6} {len(leg.functions):10} {leg.lines:6} {leg.statements:11}"
        print(f"{leg.name:14} {figures}  {commands}")
    if listed:
        for function in sorted(whole.functions):
            legs = "  ".join(leg.name for leg in (put, stored) if function in leg.functions)
            lines = function.last - function.first + 1
            print(f"{function.file}:{function.first} {function.name} {lines}  ({legs})")


if __name__ == "__main__":
    main()
