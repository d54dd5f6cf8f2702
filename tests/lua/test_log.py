"""log: custom events, and the length of histories."""

from tests.lua.story import Story


async def _log(story: Story, at: float, message: str = "note", data: str | None = None) -> None:
    await story.store.log(jid="a", message=message, now=at, data=data)


async def test_event_has_a_whole_second_and_the_fraction_apart(story: Story) -> None:
    await story.put("a", 0)
    await _log(story, 1.9, "half way", '{"percent": 50, "e": []}')
    await _log(story, 2)
    await _log(story, 3.25)
    assert (await story.items("j:a-history"))[1:] == [
        '[1,"half way",{"percent": 50, "e": []},0.900000]',
        '[2,"note"]',
        '[3,"note",{},0.250000]',
    ]
    assert (await story.event_times("a"))[1:] == [(1.9, "half way"), (2, "note"), (3.25, "note")]


async def test_history_keeps_a_hundred_events_the_first_and_the_latest(story: Story) -> None:
    await story.put("a", 0)
    for at in range(1, 103):
        await _log(story, at)
    history = await story.items("j:a-history")
    assert (len(history), history[0]) == (100, '[0,"put",{"q":"mail"}]')
    assert history[1:] == [f'[{at},"note"]' for at in range(4, 103)]
