"""Job sets against a model, with random calls of those that put and end members."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

import pytest

from aioqless.errors import ScriptError
from tests.lua.story import Story
from tests.lua.test_job_sets import CALLBACKS, add, cancel, close, status

JIDS = [f"j{number}" for number in range(8)]


@dataclass
class Model:
    """What a set should say: where each member is."""

    places: dict[str, str] = field(default_factory=dict)  # open, failed, canceled or complete
    closed: bool = False
    then: bool = False
    ended: bool = False

    def react(self) -> None:
        values = list(self.places.values())
        if self.closed and "open" not in values:
            self.ended = True
            self.then = self.then or all(value == "complete" for value in values)

    def status(self) -> dict[str, object]:
        values = list(self.places.values())
        counts = {place: values.count(place) for place in ("open", "failed", "canceled")}
        found: dict[str, object] = {"added": len(values), **counts}
        found |= {"then_jid": "i-then-1"} if self.then else {}
        found |= {"ended_jid": "i-ended-1"} if self.ended else {}
        return {name: value for name, value in found.items() if value}


async def step(story: Story, model: Model, at: float, running: dict[str, str]) -> None:
    """Make one random call, and change the model as it should."""
    jid, what = (
        random.choice(JIDS),
        random.choice(
            ["add", "add", "pop", "pop", "complete", "again", "fail", "retry", "revive", "cancel"]
            + ["close", "release", "cancel all"] * (random.random() < 0.2)
        ),
    )
    member = next(iter(running), None)
    match what:
        case "add" if not model.closed and jid not in running:
            await add(story, at, jid, **CALLBACKS)
            model.places[jid] = "open"
        case "add" if model.closed and member and jid not in running:
            await add(story, at, jid, member=member, fence=running[member])
            model.places[jid] = "open"
        case "pop":
            for popped in await story.pop(at):
                if popped.startswith("j"):
                    running[popped] = (await story.job(popped))["x-fence"]
                else:
                    await story.complete(popped, at)
        case "complete" if member:
            await story.complete(member, at)
            del running[member]
            model.places[member] = "complete"
        case "again":  # a completion that is sent again, or of a lost lock
            if jid not in running:
                with pytest.raises(ScriptError):
                    await story.complete(jid, at)
        case "fail" if member:
            await story.fail(member, at)
            del running[member]
            model.places[member] = "failed"
        case "retry" if member:
            await story.retry(member, at)
            del running[member]
        case "release" if member:
            await story.release(member, at)
            del running[member]
        case "revive" if model.places.get(jid) == "failed":
            await story.call("revive", "job", jid=jid, now=at)
            model.places[jid] = "open"
        case "cancel" if jid in model.places:
            if await story.cancel(jid):
                running.pop(jid, None)
                model.places[jid] = "canceled"
        case "close":
            await close(story, at, **CALLBACKS)
            model.closed = True
        case "cancel all" if model.places:
            await cancel(story, at)
            model.closed = True
            for each, place in model.places.items():
                if place == "open":
                    running.pop(each, None)
                    model.places[each] = "canceled"
    model.react()


@pytest.mark.parametrize("lives", [25, pytest.param(1000, marks=pytest.mark.long)])
async def test_sets_are_as_the_model_says(story: Story, lives: int) -> None:
    for seed in range(lives):
        random.seed(seed)
        await story.redis.flushdb()
        model, running = Model({JIDS[0]: "open"}), dict[str, str]()
        await add(story, 0, JIDS[0], **CALLBACKS)
        for number in range(1, 80):
            await step(story, model, number, running)
            assert await _status(story) == model.status(), (seed, number)
            if number % 20 == 0:
                await _check_consistency(story, number)


async def _status(story: Story) -> dict[str, object]:
    return {name: value for name, value in (await status(story)).items() if name != "running"}


async def _check_consistency(story: Story, at: float) -> None:
    cursor = "0"
    while True:
        reply = await story.store.check(now=at, cursor=cursor, budget=1000)
        assert not [each for each in reply["found"] if "set" in json.dumps(each)], reply
        if (cursor := reply["cursor"]) == "0":
            return
