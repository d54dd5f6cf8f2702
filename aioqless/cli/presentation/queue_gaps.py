"""Prints why jobs wait, and queues that workers serve without jobs."""

from __future__ import annotations

from aioqless.cli.presentation.formatting import pluralize
from aioqless.cli.presentation.printing import make_console
from aioqless.client.coverage import Coverage
from aioqless.validation import plain


def print_gaps(coverage: Coverage) -> None:
    """Print a line for each gap and each delay to the standard error."""
    errors = make_console(errors=True)
    delays = [each for each in coverage.delays.values() if each.reason != "no_worker"]
    for gap in (*coverage.unserved, *delays, *coverage.unused):
        errors.print(plain(str(gap)), style="yellow", soft_wrap=True, markup=False)
    if coverage.unserved and coverage.silent:
        others = pluralize(coverage.silent, "worker")
        errors.print(f"{others} of other clients don't report which queues they serve", style="dim")
