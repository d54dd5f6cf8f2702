"""The synchronous client."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flask
import pytest
from redis import exceptions

from aioqless import Client, InvalidData, Job, NewJob, SyncClient, chain, job
from aioqless.errors import HasDependents
from tests.server import OwnServer

ROOT = Path(__file__).parents[2]


@job(klass="Greet")
async def greet(job: Job, name: str) -> None: ...


@pytest.fixture
def blocking(redis_url: str, namespace: str) -> Iterator[SyncClient]:
    with SyncClient(redis_url, namespace=namespace) as client:
        yield client


def test_job_is_put_read_and_canceled_without_a_loop(blocking: SyncClient) -> None:
    jid = blocking.put(greet, {"name": "Ann"}, priority=-1, queue="mail")
    found = blocking.call(lambda client: client.jobs.get(jid))
    assert found
    assert (found.klass, found.data, found.queue, found.priority) == (
        "Greet",
        {"name": "Ann"},
        "mail",
        -1,
    )
    assert blocking.call(lambda client: client.jobs.cancel(jid)) == [jid]
    assert blocking.call(lambda client: client.jobs.get(jid)) is None


def test_call_does_what_an_async_client_can(blocking: SyncClient) -> None:
    flow = blocking.put_flow(chain(greet.data(name="Ann"), greet.data(name="Bob")))
    dependents = blocking.call(lambda client: client.queue("default").jids("depends"))
    assert dependents == list(flow.last)
    recurring = blocking.recur(greet.data(name="Ann"), every=60, offset=60, jid="often")
    (found,) = blocking.call(lambda client: client.recurring.page("default"))
    assert found.jid == recurring.jid == "often"
    blocking.call(lambda _: recurring.cancel())
    assert blocking.call(lambda client: client.recurring.get("often")) is None


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("queue", "client.call(lambda client: client.queue...)"),
        ("jobs", "client.call(lambda client: client.jobs...)"),
        ("config", "client.call(lambda client: client.config...)"),
        ("enqueue", "client.put(handler.data(name=...), delay=60)"),
    ],
)
def test_other_names_say_what_to_write(blocking: SyncClient, name: str, way: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"write `{way}`")):
        getattr(blocking, name)


def test_put_many_keeps_the_order(blocking: SyncClient) -> None:
    jids = blocking.put_many([NewJob("K", n) for n in range(250)], queue="mail")
    waiting = blocking.call(lambda client: client.queue("mail").peek(count=300))
    assert [(each.jid, each.data) for each in waiting] == [(jid, n) for n, jid in enumerate(jids)]


def test_errors_are_those_of_the_async_client(blocking: SyncClient) -> None:
    with pytest.raises(InvalidData, match="Greet can't take this data"):
        blocking.put(greet, {"name": 3}, queue="mail")
    a = blocking.put("K", queue="mail")
    blocking.put("K", depends=[a], queue="mail")
    with pytest.raises(HasDependents):
        blocking.call(lambda client: client.jobs.cancel(a))
    with pytest.raises(TypeError):
        SyncClient(colour="red")
    with pytest.raises(ValueError, match="timeout"):
        SyncClient(timeout=-1)


def test_threads_can_share_a_client(blocking: SyncClient) -> None:
    before = threading.active_count()
    with ThreadPoolExecutor(8) as threads:
        jids = list(threads.map(lambda n: blocking.put("K", n, queue="mail"), range(200)))
        assert threading.active_count() <= before + 9
    assert len(set(jids)) == 200
    assert blocking.call(lambda client: client.queue("mail").length()) == 200


def test_call_after_close_connects_again(blocking: SyncClient) -> None:
    others = threading.enumerate()
    blocking.put("K", queue="mail")
    blocking.close()
    assert "aioqless" not in [each.name for each in threading.enumerate() if each not in others]
    blocking.close()
    blocking.put("K", queue="mail")
    assert blocking.call(lambda client: client.queue("mail").length()) == 2


def test_outage_raises_and_later_calls_work(own_server: OwnServer) -> None:
    with SyncClient(own_server.url) as client:
        client.put("K", queue="mail")
        own_server.kill()
        with pytest.raises(exceptions.ConnectionError):
            client.put("K", queue="mail")
        own_server.start()
        client.put("K", queue="mail")
        assert client.call(lambda client: client.queue("mail").length()) == 2


FORKING = """
import os, sys
from aioqless import SyncClient
client = SyncClient(sys.argv[1], namespace=sys.argv[2])
client.put("Parent", queue="mail")
for _ in range(3):
    if os.fork() == 0:
        client.put("Child", queue="mail")
        os._exit(0)
for _ in range(3):
    assert os.wait()[1] == 0
client.put("Parent", queue="mail")
"""


async def test_forked_processes_have_their_own_connections_and_end_without_closing_them(
    client: Client, redis_url: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "ignore",
        "-c",
        FORKING,
        redis_url,
        client.namespace,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    async with asyncio.timeout(60):
        assert await process.wait() == 0
    assert (
        sorted(each.klass for each in await client.queue("mail").peek())
        == ["Child"] * 3 + ["Parent"] * 2
    )


def test_keyboard_interrupt_reaches_the_caller(redis_url: str, namespace: str) -> None:
    # Ctrl-C is ignored in what a script starts in the background, these tests included.
    waiting = f"""
import asyncio, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from aioqless import SyncClient
client = SyncClient({redis_url!r}, namespace={namespace!r})
client.put("K", queue="mail")
print("waiting", flush=True)
client.call(lambda client: asyncio.Event().wait())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", waiting],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in err


def test_flask_view_puts_a_job(blocking: SyncClient) -> None:
    app = flask.Flask(__name__)

    @app.post("/greet/<name>")
    def view(name: str) -> str:
        return blocking.put(greet, {"name": name}, queue="mail")

    jid = app.test_client().post("/greet/Ann").text
    found = blocking.call(lambda client: client.jobs.get(jid))
    assert found and found.data == {"name": "Ann"}
