"""Prints why jobs wait, and queues that workers serve without jobs."""

from __future__ import annotations

from aioqless.cli.presentation.formatting import pluralize
from aioqless.cli.presentation.printing import make_console
from aioqless.client.coverage import Coverage, QueueDelay, QueueGap
from aioqless.validation import plain

MAX_LINES = 5


def print_gaps(coverage: Coverage) -> None:
    """Print the queues with the most waiting jobs that have a gap or delay, to standard error."""
    errors = make_console(errors=True)
    delays = [each for each in coverage.delays.values() if each.reason != "no_worker"]
    waiting: list[QueueGap | QueueDelay] = [*coverage.unserved, *delays]
    gaps = [*sorted(waiting, key=lambda gap: -gap.jobs), *coverage.unused]
    for gap in gaps[:MAX_LINES]:
        errors.print(plain(str(gap)), style="yellow", soft_wrap=True, markup=False)
    if len(gaps) > MAX_LINES:
        others = pluralize(len(gaps) - MAX_LINES, "more queue")
        errors.print(f"{others} without workers or jobs, or with jobs that wait", style="dim")
    if coverage.unserved and coverage.silent:
        others = pluralize(coverage.silent, "worker")
        errors.print(
            f"the queues of {others} are unknown: of other clients, or people", style="dim"
        )
