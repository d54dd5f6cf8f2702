"""Failover to a replica with another clock."""

from __future__ import annotations

import asyncio

import pytest

from tests.chaos.clocks import GRACE, HEARTBEAT, LIVE, measure
from tests.programs import needs

pytestmark = [needs("faketime"), pytest.mark.long]


async def test_jobs_run_once_across_a_failover_to_another_clock() -> None:
    ahead, behind = await asyncio.gather(measure(600, watch=5), measure(-600, watch=5))
    assert (ahead.live_again, ahead.live_done) == (behind.live_again, behind.live_done) == (0, LIVE)
    assert (
        ahead.dead_back is not None and GRACE <= ahead.dead_back < HEARTBEAT and ahead.late_refused
    )
    assert behind.dead_back is None and behind.dead_due > 600
