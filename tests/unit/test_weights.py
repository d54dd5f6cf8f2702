"""No extra grows unnoticed: docs/get-started/install.md says what each of them weighs."""

from __future__ import annotations

import sys

import pytest

from tests.unit.core_only import distributions
from tests.unit.weights import extras, recorded, weigh

pytestmark = pytest.mark.long

RECORDED = recorded()
MORE = 1.2  # times the recorded size and number of modules; newer versions differ a little
UPDATE = "If it has to be, run `python -m tests.unit.weights`, and update the table of the page."


def test_page_on_installing_lists_every_extra() -> None:
    assert set(RECORDED) == set(extras()), UPDATE


@pytest.mark.parametrize("extra", sorted(RECORDED))
def test_extra_is_as_light_as_the_page_says(extra: str) -> None:
    known, found = RECORDED[extra], weigh(extra)
    names = ", ".join(sorted(distributions("aioqless", *([extra] if extra else []))))
    more = sys.version_info < (3, 11, 3)  # then redis needs async-timeout
    assert found.packages <= known.packages + more, f"{names}. {UPDATE}"
    assert found.megabytes <= known.megabytes * MORE + 1, UPDATE
    # The time of an import depends on the machine; the number of modules doesn't.
    assert found.modules <= known.modules * MORE + 10, UPDATE
