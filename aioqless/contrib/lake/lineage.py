"""OpenLineage events about runs that write tables of the lake.

They are sent where `openlineage-python` is installed and its environment variables say where to.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from aioqless.contrib.lake.storage import Storage

_SETTINGS: Final = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")
_PRODUCER: Final = "https://pypi.org/project/aioqless"
_LONGEST_WAIT: Final = 5.0  # seconds that the end of a run waits until events are sent


@dataclass(frozen=True)
class Dataset:
    """What a run reads or writes, as OpenLineage names it: `s3://bucket`, `lake/silver/jobs`."""

    namespace: str
    name: str

    @classmethod
    def of_table(cls, storage: Storage) -> Dataset:
        """Return a Delta table."""
        if storage.is_local:
            return cls("file", storage.url)
        parts = urlsplit(storage.url)
        scheme = "s3" if parts.scheme == "s3a" else parts.scheme
        return cls(f"{scheme}://{parts.netloc}", parts.path.lstrip("/"))

    @classmethod
    def of_archive(cls, url: str | None, namespace: str) -> Dataset:
        """Return the archive of a namespace; the URL's user and password are left out."""
        parts = urlsplit(url or "redis:")
        host = parts.netloc.rpartition("@")[2] or parts.path
        return cls(f"{parts.scheme}://{host}" if host else "redis", f"{namespace}/archive")


@contextmanager
def emit_run(
    job: str,
    inputs: Sequence[Dataset],
    outputs: Sequence[Dataset],
    report: Callable[[str], object],
) -> Iterator[None]:
    """Send the events START and COMPLETE, FAIL or ABORT about what is done within.

    Events that can't be sent are reported in one line, and the run ends at most five seconds later.

    Args:
        job: The name of the job; its namespace is OPENLINEAGE_NAMESPACE, or `aioqless`.
        inputs: What the run reads.
        outputs: What the run writes.
        report: Called with a line if events can't be sent.
    """
    if not any(name.startswith(_SETTINGS) for name in os.environ):
        yield
        return
    states: queue.SimpleQueue[tuple[str, datetime] | None] = queue.SimpleQueue()
    failures: list[str] = []

    def send() -> None:
        try:
            _send(job, inputs, outputs, states)
        except Exception as error:  # the run is not to fail with it, whatever it is
            failures.append(f"{type(error).__name__}: {error}"[:300])

    sender = threading.Thread(target=send, name="openlineage", daemon=True)
    sender.start()
    states.put(("START", datetime.now(UTC)))
    last = "ABORT"
    try:
        yield
        last = "COMPLETE"
    except Exception:
        last = "FAIL"
        raise
    finally:
        states.put((last, datetime.now(UTC)))
        states.put(None)
        sender.join(_LONGEST_WAIT)
        if sender.is_alive():
            failures.append(f"no answer within {_LONGEST_WAIT:g} s")
        for reason in failures:
            report(f"OpenLineage events were not sent: {reason}")


def _send(
    job: str,
    inputs: Sequence[Dataset],
    outputs: Sequence[Dataset],
    states: queue.SimpleQueue[tuple[str, datetime] | None],
) -> None:
    """Send an event for each state until None."""
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import (
        InputDataset,
        Job,
        OutputDataset,
        Run,
        RunEvent,
        RunState,
    )
    from openlineage.client.uuid import generate_new_uuid

    client = OpenLineageClient()
    run = Run(str(generate_new_uuid()))
    named = Job(os.environ.get("OPENLINEAGE_NAMESPACE", "aioqless"), job)
    while (at := states.get()) is not None:
        state, moment = at
        client.emit(
            RunEvent(
                eventType=RunState[state],
                eventTime=moment.isoformat(),
                run=run,
                job=named,
                producer=_PRODUCER,
                inputs=[InputDataset(each.namespace, each.name) for each in inputs],
                outputs=[OutputDataset(each.namespace, each.name) for each in outputs],
            )
        )
    client.close(_LONGEST_WAIT)
