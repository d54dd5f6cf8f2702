"""Figures of the guides are those of the code."""

from __future__ import annotations

import inspect
import re

import pytest

from aioqless.cli.worker_options import list_options
from aioqless.client.job_data import MAX_BYTES
from aioqless.client.put_options import MAX_CONCURRENCY, MAX_CONTEXT, MAX_STARTS
from aioqless.client.recurring.schedule import MAX_CRON_BACKLOG
from aioqless.client.workers import TIMEOUT
from aioqless.client.workflows import MAX_BYTES as MAX_WORKFLOW_BYTES
from aioqless.client.workflows import MAX_DEPENDENCIES, MAX_JOBS
from aioqless.handlers.retry_policy import exponential
from aioqless.lua import constant
from aioqless.worker import Settings
from aioqless.worker.parts.presence import INTERVAL
from tests.pages import ROOT

BACKOFF = ", ".join(
    f"{name}={each.default:g}" for name, each in inspect.signature(exponential).parameters.items()
)
SENTENCES = [
    ("handlers.md", f"| `retries` | {constant('DEFAULT_RETRIES')} |"),
    ("putting.md", f"| `retries` | the handler's, or {constant('DEFAULT_RETRIES')} |"),
    ("putting.md", f"at most {MAX_CONTEXT:,} bytes of JSON"),
    ("putting.md", f"1 to {constant('MAX_NAME_LENGTH')} bytes of UTF-8"),
    ("putting.md", f"{MAX_BYTES >> 20} MiB by default"),
    ("retries.md", f"`exponential({BACKOFF})`"),
    ("limits.md", f"at once, 1 to {MAX_CONCURRENCY:,} |"),
    ("limits.md", f"n is 1 to {MAX_STARTS:,}"),
    ("queues.md", f"didn't answer within {TIMEOUT:g} seconds"),
    ("queues.md", f"| `unknown_klass_delay` | {Settings.unknown_klass_delay:g} |"),
    ("queues.md", f"| `unknown_klass_timeout` | {Settings.unknown_klass_timeout:g} |"),
    ("queues.md", f"counts for [{constant('WORKER_TIMEOUT')} seconds](locks"),
    ("configuration.md", f"| `worker-timeout` | {constant('WORKER_TIMEOUT')} |"),
    ("recurring.md", f"with cron, at most {MAX_CRON_BACKLOG:,}"),
    ("locks.md", f"sends a beat every {INTERVAL:g} seconds"),
    ("locks.md", f"`worker-timeout` ({constant('WORKER_TIMEOUT')} seconds)"),
    ("locks.md", f"`stuck_after` seconds ({Settings.stuck_after:g})"),
    ("executors.md", f"| `concurrency` ({Settings.concurrency}) |"),
    ("executors.md", f"`threads` ({Settings.threads}) |"),
    ("executors.md", f"`kill_after` ({Settings.kill_after:g} s)"),
    ("workflows.md", f"at most {MAX_JOBS:,} jobs"),
    ("workflows.md", f"{MAX_DEPENDENCIES:,} dependencies"),
    ("workflows.md", f"{MAX_WORKFLOW_BYTES >> 20} MiB of data"),
]
OPTIONS = {
    each.flags[-1]: each.default
    for each in list_options()
    if isinstance(each.default, int | float)
    and not isinstance(each.default, bool)
    and each.name != "processes"
}


@pytest.mark.parametrize(("page", "sentence"), SENTENCES)
def test_figure_of_the_page_is_that_of_the_code(page: str, sentence: str) -> None:
    assert sentence in " ".join((ROOT / "docs" / page).read_text("utf-8").split())


@pytest.mark.parametrize("flag", OPTIONS)
def test_page_on_workers_has_the_default_of_an_option(flag: str) -> None:
    page = (ROOT / "docs" / "workers.md").read_text("utf-8")
    row = re.search(rf"^\|[^|]*`{flag}`[^|]*\|([^|]*)\|", page, re.MULTILINE)
    assert row and str(OPTIONS[flag]) in row[1]
