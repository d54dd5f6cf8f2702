"""Jids that end as another key of a job does: no job has one, so each is an unknown jid."""

from typing import Any

import pytest

from tests.lua.story import Story
from tests.lua.test_invalid_arguments import FORMS, ValidCall, call, contents, replaced

NAMES = ("jid", "jids", "depends", "replace", "on")


def _calls(valid: ValidCall, jid: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the calls of a form that name the jid in one place each."""
    given: dict[str, tuple[list[str], list[str]]] = {}
    text = f'["{jid}"]'
    for part in ("args", "batch"):
        row = getattr(valid, part)
        for at, arg in enumerate(getattr(valid.form, part)):
            if arg.name in NAMES and arg.type != "jid":
                found = replaced(row, at, text if arg.type == "jids" else jid)
                words = {part: ["1", *found] if part == "batch" else found}
                given[arg.name] = (valid.keys, valid.argv(**words))
    if valid.form.rest and valid.form.rest.name in NAMES:
        given["rest"] = (valid.keys, valid.argv(rest=[jid]))
    for option in valid.form.options:
        if option.type == "jids":
            given[option.name] = (valid.keys, valid.argv(options=[option.name, text]))
    return given


CALLS = {f"{name}: {what}": FORMS[name] for name in FORMS for what in _calls(FORMS[name], "a")}


async def _outcome(story: Story, name: str, jid: str) -> tuple[Any, bytes]:
    await story.redis.flushdb()
    await story.running("a", tags=["x"])
    await story.put("b", 2, delay=50, tags=["x"])
    await story.put("held", 2, depends=["a", "b"])
    valid = CALLS[name]
    keys, argv = _calls(valid, jid)[name.rpartition(": ")[2]]
    reply = await call(story, valid.command.name, keys, argv)
    return repr(reply).replace(jid, "JID"), await contents(story)


@pytest.fixture
def namespace() -> str:
    """Return one namespace for all tests, so that the scripts are compiled once."""
    return "reserved"


@pytest.mark.parametrize("name", CALLS)
async def test_jid_with_a_reserved_ending_is_an_unknown_job(story: Story, name: str) -> None:
    unknown, _ = await _outcome(story, name, "nowhere")
    for jid in ("a-history", "held-dependencies", "a-dependents"):
        assert (await _outcome(story, name, jid))[0] == unknown
