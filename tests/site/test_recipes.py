"""The recipe for agents runs with the real package, and its test model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioqless.testing import perform
from tests.pages import ROOT, blocks

pytestmark = pytest.mark.site


@pytest.fixture
def searched() -> list[str]:
    return []


@pytest.fixture
def recipe(searched: list[str]) -> dict[str, Any]:
    """Return the names of the recipe, with a model that calls each tool and answers."""
    pytest.importorskip("pydantic_ai")

    async def find_pages(words: str) -> list[str]:
        searched.append(words)
        return ["a page"]

    [code] = [each for each in blocks(ROOT / "docs" / "recipes.md", "py") if "pydantic_ai" in each]
    names = {"__name__": "recipes", "find_pages": find_pages}
    exec(code.replace("openai:gpt-5", "test"), names)
    return names


async def test_agent_asks_its_model_and_tools_once(
    recipe: dict[str, Any], searched: list[str]
) -> None:
    new = recipe["research"].data(question="Why?")
    first = await perform(new)
    assert first.result == '{"search":["a page"]}'
    stored = {str(given["name"]): json.loads(str(given["result"])) for _, given in first.commands}
    assert [name.partition("-")[0] for name in stored] == ["request", "search", "request"]
    later = await perform(new, steps=stored)
    assert (later.result, later.commands) == (first.result, [])
    assert len(searched) == 1
    del stored["request-2"]
    resumed = await perform(new, steps=stored)
    assert [given["name"] for _, given in resumed.commands] == ["request-2"]
    assert (resumed.result, len(searched)) == (first.result, 1)
