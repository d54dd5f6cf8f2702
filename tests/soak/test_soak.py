"""The short form of `nox -s soak`: under mixed load nothing grows."""

from __future__ import annotations

import pytest

from tests.soak.gauges import GAUGES, Gauge, growth
from tests.soak.run import soak


async def test_memory_descriptors_and_keys_stay_as_they_are_under_mixed_load() -> None:
    soaked = await soak(50, warm=20, every=1)
    assert soaked.wrong == []
    assert soaked.jobs > 1000


@pytest.mark.parametrize("gauge", GAUGES, ids=lambda gauge: gauge.name)
def test_what_grows_is_found(gauge: Gauge) -> None:
    flat = [{each.name: 1000.0 * each.unit for each in GAUGES} for _ in range(30)]
    assert growth(flat) == []
    growing = [
        reading | {gauge.name: reading[gauge.name] * (1 + number / 10)}
        for number, reading in enumerate(flat)
    ]
    assert len(growth(growing)) == 1
