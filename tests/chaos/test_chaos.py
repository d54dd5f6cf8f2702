"""Short forms of `nox -s chaos`: one kind of fault during some hundred jobs."""

from __future__ import annotations

import asyncio

import pytest

from tests.chaos.faults import KINDS, TOGETHER, Kind
from tests.chaos.ledger import Note
from tests.chaos.trial import Plan, run_trial
from tests.chaos.verdict import JobRecords, Verdict, judge_runs
from tests.programs import find, fixture_name

BRIEF = Plan(strikes=2, rate=100, jobs=100, workers=2, heartbeat=1.0, grace=0.5, haste=0.4)
# The most frequent faults in production; the others are long. Each takes five seconds of CPU time.
ALWAYS = {"kill-worker", "kill-redis"}
AT_ONCE = 4  # trials; they mostly wait for locks to expire and processes to start


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> dict[str, Verdict]:
    """Run the requested kinds and return their verdicts."""
    names = {item.name.partition("[")[2].rstrip("]") for item in request.session.items}
    kinds = [kind for kind in (*KINDS, TOGETHER) if kind.name in names]
    return asyncio.run(_all([kind for kind in kinds if find("faketime") or not kind.clocks]))


async def _all(kinds: list[Kind]) -> dict[str, Verdict]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def verdict_of(kind: Kind) -> Verdict:
        async with slots:
            return await run_trial(kind, BRIEF, seed=1)

    return dict(
        zip(
            [kind.name for kind in kinds],
            await asyncio.gather(*map(verdict_of, kinds)),
            strict=True,
        )
    )


def marks(kind: Kind) -> list[pytest.MarkDecorator]:
    """Return the marks of a kind's test."""
    long = [] if kind.name in ALWAYS else [pytest.mark.long]
    return [*long, *([pytest.mark.program] if kind.clocks else [])]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=kind.name, marks=marks(kind)) for kind in (*KINDS, TOGETHER)],
)
def test_no_job_is_lost_or_run_twice_under_the_fault(
    verdicts: dict[str, Verdict], kind: Kind, request: pytest.FixtureRequest
) -> None:
    if kind.clocks:
        request.getfixturevalue(fixture_name("faketime"))
    verdict = verdicts[kind.name]
    assert verdict.wrong == []
    assert verdict.struck == BRIEF.strikes
    assert verdict.jobs >= BRIEF.jobs


def run(fence: int, popped: float, until: float, how: str) -> list[Note]:
    began = Note(fence, "start", ("a", fence, f"w{fence}", popped + 60, 0.0, 1))
    return [began, Note(fence + 0.5, "end", ("a", fence, how, until))]


@pytest.mark.parametrize(
    ("former", "holders"),
    [
        (run(1, 100, 160, "done"), 0),
        ([*run(1, 100, 180, "done"), Note(1.6, "told", ("a", 1, "job.completed"))], 1),
        (run(1, 100, 180, "done"), 0),
        (run(1, 100, 180, "retry"), 0),
        (run(1, 100, 180, "killed"), 0),
        ([*run(1, 100, 180, "killed"), Note(4, "start", ("b", 4, "w1", 160, 0.0, 1))], 1),
    ],
)
def test_lock_that_was_taken_over_too_early_is_detected(former: list[Note], holders: int) -> None:
    verdict = Verdict()
    judge_runs(JobRecords.of([*former, *run(2, 170, 230, "done")]), {}, 60, verdict)
    assert verdict.holders == holders
