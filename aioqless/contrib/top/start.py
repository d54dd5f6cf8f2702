"""The first screen: queues, failure groups and workers, and what can be done with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import ClassVar, Final

from redis import exceptions
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from aioqless.cli.presentation.formatting import (
    STYLES,
    format_relative_time,
    format_time,
    pluralize,
)
from aioqless.cli.presentation.histograms import draw_sparkline
from aioqless.client import Client, Overview
from aioqless.client.overview import OverviewReader, Rates
from aioqless.client.queue_statistics import QueueOverview
from aioqless.client.workers import WorkerCounts
from aioqless.contrib.top.dialogs import Question
from aioqless.contrib.top.jobs import JobsScreen
from aioqless.contrib.top.live_table import LiveTable, number, words
from aioqless.errors import AioqlessError
from aioqless.validation import plain

COUNTS: Final = ("waiting", "running", "stalled", "scheduled", "depends")
TREND: Final = 20  # rates
ALIVE: Final = (True, None, False)  # in this order; None: the worker sends no beats
COLUMNS: Final[Mapping[str, Mapping[str, int | None]]] = {
    "queues": {
        "queue": None,
        **dict.fromkeys((*COUNTS, "done/s", "failed/s"), 9),
        "lately": None,
    },
    "failures": {"failed": 9, "group": None},
    "workers": {"jobs": 9, "stalled": 9, "worker": None, "last seen": None},
}


class StartScreen(Screen[None]):
    """Shows a namespace live, and acts on what is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause/resume"),
        Binding("r", "retry", "Retry group"),
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "close_filter", show=False),
    ]

    def __init__(self, client: Client, every: float) -> None:
        super().__init__()
        self._client = client
        self._every = every
        self._by_rate = False
        self._overviews = OverviewReader(client)
        self._error = ""

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield Static("", id="head", markup=False)
        yield Input(placeholder="only rows that contain …", id="filter")
        for name, columns in COLUMNS.items():
            yield LiveTable(columns, id=name)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read Redis."""
        self.query_one("#queues").focus()
        self._read_forever()

    @work
    async def _read_forever(self) -> None:
        while True:
            try:
                await self._overviews.read()
                self._error = ""
            except (exceptions.RedisError, OSError) as error:
                self._error = f"Redis is unavailable: {error}"
            if self.is_mounted:
                self._show()
            await asyncio.sleep(self._every)

    def _show(self) -> None:
        overview, rates = self._overviews.latest, self._overviews.rates
        where = f"{self._client.endpoint['url']} {self._client.namespace}"
        queues = [(each, rates(each.name)) for each in overview.queues]
        queues.sort(key=_busiest_first if self._by_rate else lambda row: row[0].name)
        groups = sorted(overview.failed.items(), key=lambda each: (-each[1], each[0]))
        workers = sorted(overview.workers, key=lambda each: (ALIVE.index(each.alive), each.name))
        failed = STYLES["failed"]
        rows: dict[str, dict[str, Sequence[Text]]] = {
            "queues": {each.name: _queue_row(each, lately) for each, lately in queues},
            "failures": {name: (number(count, failed), words(name)) for name, count in groups},
            "workers": {each.name: _worker_row(each, overview.when) for each in workers},
        }
        for head in self.query("#head").results(Static):
            head.update(_head(overview, _latest(rates()).completed, self._error, where))
        for table in self.query(LiveTable):  # there is nothing left when the program ends
            table.show(rows[table.id or ""])

    def _focused(self) -> tuple[str, str | None]:
        """Return which list has the focus, and the name of its selected row."""
        table = self.focused if isinstance(self.focused, LiveTable) else None
        return (table.id or "", table.selected) if table else ("", None)

    def on_data_table_row_selected(self) -> None:
        """Show the jobs of the selected queue, failure group or worker."""
        table, name = self._focused()
        if name is not None:
            self.app.push_screen(JobsScreen(self._client, table, name, self._every))

    def action_sort(self) -> None:
        """Sort the queues by name, or by the rate of completed jobs."""
        self._by_rate = not self._by_rate
        self._show()
        self.notify("queues: busiest first" if self._by_rate else "queues: by name")

    @work
    async def action_pause(self) -> None:
        """Pause or resume the selected queue or worker."""
        table, name = self._focused()
        if table == "queues" and name is not None:
            await self._try(self._toggle_queue(name))
        elif table == "workers" and name is not None:
            await self._try(self._toggle_worker(name))

    @work
    async def action_retry(self) -> None:
        """Retry the jobs of the selected failure group, if the user confirms it."""
        table, group = self._focused()
        if table != "failures" or group is None:
            return
        count = self._overviews.latest.failed.get(group, 0)
        question = f"Retry {pluralize(count, 'job')} of {plain(group)}?"
        if await self.app.push_screen_wait(Question(question)):
            await self._try(self._retry(group, count))

    async def _try(self, action: Awaitable[str]) -> None:
        try:
            self.notify(await action, markup=False)
        except (AioqlessError, exceptions.RedisError) as error:
            self.notify(plain(str(error)), title="Refused", severity="error", markup=False)

    async def _toggle_queue(self, name: str) -> str:
        queue = self._client.queue(name)
        if (await queue.counts()).paused:
            await queue.resume()
            return f"{plain(name)} is resumed"
        await queue.pause()
        return f"{plain(name)} is paused; running jobs continue"

    async def _toggle_worker(self, name: str) -> str:
        if (await self._client.workers.show(name)).paused:
            await self._client.workers.resume(name)
            return f"{plain(name)} is resumed"
        await self._client.workers.pause(name)
        return f"{plain(name)} starts no more jobs; running jobs continue"

    async def _retry(self, group: str, count: int) -> str:
        done = await self._client.jobs.retry_group(group, count)
        return f"{pluralize(done, 'job')} of {plain(group)} retried"

    def action_filter(self) -> None:
        """Let the user type what shown rows contain."""
        self.query_one(Input).add_class("open").focus()

    def action_close_filter(self) -> None:
        """Show all rows again."""
        entry = self.query_one(Input)
        entry.value = ""
        entry.remove_class("open")
        self.query_one("#queues").focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Filter as the user types."""
        for table in self.query(LiveTable):
            table.filter(changed.value)

    def on_input_submitted(self) -> None:
        """Go to the first list with a row."""
        tables = list(self.query(LiveTable))
        next((table for table in tables if table.row_count), tables[0]).focus()


def _busiest_first(row: tuple[QueueOverview, Sequence[Rates]]) -> tuple[float, int, str]:
    queue, rates = row
    return (-_latest(rates).completed, -queue.waiting, queue.name)


def _latest(rates: Sequence[Rates]) -> Rates:
    return rates[-1] if rates else Rates()


def _head(overview: Overview, rate: float, error: str, where: str) -> Text:
    server = overview.server
    memory = f"{server.memory / 2**20:,.1f} MiB memory · {server.clients:,} clients"
    failed = sum(overview.failed.values())
    counts = [
        part
        for count in COUNTS
        for part in ((f"{overview.sum(count):,} {count}", STYLES[count]), "  ")
    ]
    return Text.assemble(
        ("aioqless ", "bold"),
        plain(where),
        (f"  {format_time(overview.when)[11:] if overview.when else ''}", "dim"),
        (f"  {memory if server.version else ''}  ", "dim"),
        (plain(error), "bold white on red") if error else "",
        "\n",
        *counts,
        (f"{failed:,} failed", STYLES["failed"] if failed else "dim"),
        f"  {rate:,.1f} done/s",
        no_wrap=True,
        overflow="ellipsis",
    )


def _queue_row(queue: QueueOverview, rates: Sequence[Rates]) -> Sequence[Text]:
    paused = (" paused", STYLES["paused"]) if queue.paused else ""
    lately = _latest(rates)
    return (
        Text.assemble(plain(queue.name), paused),
        *(number(getattr(queue, name), STYLES[name]) for name in COUNTS),
        number(lately.completed, digits=1),
        number(lately.failed, STYLES["failed"], 1),
        Text(draw_sparkline([each.completed for each in rates[-TREND:]]), style="cyan"),
    )


def _worker_row(worker: WorkerCounts, now: float) -> Sequence[Text]:
    return (
        number(worker.jobs),
        number(worker.stalled, STYLES["stalled"]),
        words(worker.name),
        words(format_relative_time(min(worker.seen, now), now)),
    )
