"""How long a worker waits before it tries Redis again."""

from __future__ import annotations

import pytest

from aioqless.worker.outage import Outage

from .conftest import Lines


async def test_the_pauses_grow_from_the_first_to_the_longest(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    outage = Outage(0.2, 3.0)
    away = ConnectionError("away")
    assert outage.lost(away) == pytest.approx(0.2, abs=0.1)
    assert outage._since is not None
    outage._since -= 2
    assert outage.lost(away) == pytest.approx(1.2, abs=0.1)
    outage._since -= 100
    assert outage.lost(away) == 3.0
    outage.found()
    assert outage.lost(away) == pytest.approx(0.2, abs=0.1)
    assert len(lines.of("worker.redis_lost")) == 2 and len(lines.of("worker.redis_found")) == 1
