"""What the package offers."""

from __future__ import annotations

import re
import subprocess
import sys
import types

import pytest

import aioqless
from aioqless import worker


@pytest.mark.parametrize("package", [aioqless, worker])
def test_what_a_package_offers_is_exactly_what_it_names(package: types.ModuleType) -> None:
    for name in package.__all__:
        getattr(package, name)  # the names of `aioqless` are there when they are asked for
    offered = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert offered == set(package.__all__)


def test_the_names_are_sorted_and_there_once() -> None:
    assert len(set(aioqless.__all__)) == len(aioqless.__all__)


@pytest.mark.parametrize("name", aioqless.__all__)
def test_everything_that_is_offered_says_what_it_is(name: str) -> None:
    assert getattr(aioqless, name).__doc__


def test_a_name_that_is_not_offered_is_missed_by_name() -> None:
    with pytest.raises(AttributeError, match="module 'aioqless' has no attribute 'Sidekiq'"):
        _ = aioqless.Sidekiq  # type: ignore[attr-defined]


def test_the_bare_import_waits_for_no_library() -> None:
    heavy = "redis", "structlog", "asyncio", "anyio", "msgspec"
    code = f"import sys, aioqless; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_the_version_is_three_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", aioqless.__version__)
