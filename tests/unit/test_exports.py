"""Exported names of the package."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import aioqless
from aioqless import worker


@pytest.mark.parametrize("package", [aioqless, worker])
def test_all_lists_exactly_the_public_names(package: types.ModuleType) -> None:
    for name in package.__all__:
        getattr(package, name)  # the names of `aioqless` exist after they are requested
    offered = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert offered == set(package.__all__)


def test_all_is_sorted_without_duplicates() -> None:
    assert len(set(aioqless.__all__)) == len(aioqless.__all__)


@pytest.mark.parametrize("name", [each for each in aioqless.__all__ if each != "CallNext"])
def test_every_exported_name_has_a_docstring(name: str) -> None:
    assert getattr(aioqless, name).__doc__


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'aioqless' has no attribute 'Sidekiq'"):
        _ = aioqless.Sidekiq  # type: ignore[attr-defined]


def test_import_of_the_package_loads_no_library() -> None:
    heavy = "redis", "structlog", "asyncio", "anyio", "msgspec"
    code = f"import sys, aioqless; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
