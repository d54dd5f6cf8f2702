"""Short forms of `nox -s soak`."""

from __future__ import annotations

import pytest

from tests.soak.gauges import GAUGES, Gauge, growth
from tests.soak.run import soak


@pytest.mark.parametrize(
    ("seconds", "warm", "every"), [(12, 5, 0.5), pytest.param(50, 20, 1, marks=pytest.mark.long)]
)
async def test_memory_descriptors_and_keys_do_not_grow_under_mixed_load(
    seconds: float, warm: float, every: float
) -> None:
    soaked = await soak(seconds, warm, every)
    assert soaked.wrong == []
    assert soaked.jobs > 20 * seconds


@pytest.mark.parametrize("gauge", GAUGES, ids=lambda gauge: gauge.name)
def test_growth_is_detected(gauge: Gauge) -> None:
    flat = [{each.name: 1000.0 * each.unit for each in GAUGES} for _ in range(30)]
    assert growth(flat) == []
    growing = [
        reading | {gauge.name: reading[gauge.name] * (1 + number / 10)}
        for number, reading in enumerate(flat)
    ]
    assert len(growth(growing)) == 1
