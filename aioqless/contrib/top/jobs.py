"""The list of the jobs of a queue, failure group or worker, and what can be done with one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import ClassVar

from redis import exceptions
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from aioqless.cli.job_lookup import read_job_states
from aioqless.cli.presentation.formatting import STYLES, shorten
from aioqless.cli.presentation.json_output import data_text
from aioqless.client import Client
from aioqless.client.job import JobRecord
from aioqless.contrib.job_filter import Text
from aioqless.contrib.top.dialogs import DataEditor, JobDetails, Question
from aioqless.contrib.top.live_table import LiveTable, number, words
from aioqless.errors import AioqlessError
from aioqless.validation import plain

MAX_JOBS = 200  # that are listed
MAX_RELATED = 200  # dependencies and dependents of a job whose states are read


TITLES = {"queues": "queue", "failures": "failed:", "workers": "worker"}


class JobsScreen(Screen[None]):
    """Lists the jobs of a row of the first screen, and acts on the selected one.

    They are read again every few seconds. `table` has the row: queues, failures or workers.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "retry", "Retry"),
        Binding("e", "edit", "Edit and retry"),
        Binding("c", "cancel", "Cancel"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "back", "Back"),
    ]

    def __init__(self, client: Client, table: str, name: str, every: float) -> None:
        super().__init__()
        self._client = client
        self._kind = table
        self._row = name
        self._heading = f"{TITLES[table]} {name}"
        self._every = every
        self._jobs: dict[str, JobRecord] = {}

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield Static(plain(self._heading), id="head", markup=False)
        yield Input(placeholder="only rows that contain …", id="filter")
        columns = dict.fromkeys(("jid", "klass", "state", "queue", "priority", "data"))
        yield LiveTable(columns, id="jobs")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read the jobs."""
        self.query_one(LiveTable).focus()
        self._read_forever()

    @work
    async def _read_forever(self) -> None:
        while True:
            await self._read()
            await asyncio.sleep(self._every)

    async def _read_jids(self) -> list[str]:
        name, jobs = self._row, self._client.jobs
        if self._kind == "queues":
            wanted = f"queue:{Text(name)} -state:complete,failed"
            return (await jobs.search(wanted, count=MAX_JOBS)).jids
        if self._kind == "failures":
            return await jobs.failed_jids(name, count=MAX_JOBS)
        held = await self._client.workers.jobs(name)
        return [*held.stalled, *held.jobs][:MAX_JOBS]

    async def _read(self) -> None:
        try:
            jobs = await self._client.jobs.multiget(*await self._read_jids())
        except (AioqlessError, exceptions.RedisError, OSError) as error:
            self._set_title(f"Redis is unavailable: {error}")
            return
        self._jobs = {job.jid: job for job in jobs}
        most = f"the first {MAX_JOBS} jobs" if len(jobs) == MAX_JOBS else f"{len(jobs)} jobs"
        self._set_title(most if len(jobs) != 1 else "1 job")
        rows = {
            job.jid: (
                words(job.jid),
                words(job.klass),
                words(job.state, STYLES.get(job.state, "")),
                words(job.queue or ""),
                number(job.priority),
                words(shorten(data_text(job), 200)),
            )
            for job in jobs
        }
        for table in self.query(LiveTable):  # none if the user has left the screen meanwhile
            table.show(rows)

    def _set_title(self, what: str) -> None:
        for head in self.query("#head").results(Static):
            head.update(plain(f"{self._heading} · {what}"))

    def _selected(self) -> JobRecord | None:
        return self._jobs.get(self.query_one(LiveTable).selected or "")

    def action_filter(self) -> None:
        """Let the user type what shown rows contain."""
        self.query_one(Input).add_class("open").focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Filter as the user types."""
        self.query_one(LiveTable).filter(changed.value)

    def on_input_submitted(self) -> None:
        """Go back to the table."""
        self.query_one(LiveTable).focus()

    def action_back(self) -> None:
        """Remove the filter if there is one, else return to the first screen."""
        entry = self.query_one(Input)
        if entry.has_class("open"):
            entry.value = ""
            entry.remove_class("open")
            self.query_one(LiveTable).focus()
        else:
            self.dismiss()

    @work
    async def on_data_table_row_selected(self) -> None:
        """Show the selected job in full."""
        if (job := self._selected()) is None:
            return
        try:
            found = await self._client.jobs.get(job.jid) or job
            related = (found.dependencies + found.dependents)[:MAX_RELATED]
            states = await read_job_states(self._client, related)
        except (AioqlessError, exceptions.RedisError) as error:
            self._refuse(error)
            return
        self.app.push_screen(JobDetails(found, states))

    @work
    async def action_retry(self) -> None:
        """Retry the selected job."""
        if job := self._failed():
            await self._try(self._client.jobs.retry(job.jid), f"{job.jid} retried")

    @work
    async def action_edit(self) -> None:
        """Edit the data of the selected job, and retry it."""
        if not (job := self._failed()):
            return
        try:
            editor = DataEditor(job)
        except AioqlessError as error:  # it is encrypted, and there is no key
            self._refuse(error)
            return
        if (data := await self.app.push_screen_wait(editor)) is not None:
            retried = self._client.jobs.retry(job.jid, data=data, was=job)
            await self._try(retried, f"{job.jid} retried with the new data")

    @work
    async def action_cancel(self) -> None:
        """Cancel the selected job, if the user confirms it."""
        if (job := self._selected()) is None:
            return
        if await self.app.push_screen_wait(Question(f"Delete job {plain(job.jid)}?")):
            await self._try(job.cancel(), f"{job.jid} deleted")

    def _failed(self) -> JobRecord | None:
        job = self._selected()
        if job and job.state != "failed":
            self.notify(f"The job has not failed: it is {job.state}.", severity="warning")
            return None
        return job

    async def _try(self, action: Awaitable[object], done: str) -> None:
        try:
            await action
        except (AioqlessError, exceptions.RedisError) as error:
            self._refuse(error)
        else:
            self.notify(plain(done), markup=False)
        await self._read()

    def _refuse(self, error: Exception) -> None:
        self.notify(plain(str(error)), title="Refused", severity="error", markup=False)
