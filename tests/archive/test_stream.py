"""Length and trimming of the archive's stream."""

from __future__ import annotations

from aioqless.client.archive import Archive, ArchiveState
from aioqless.errors import InvalidArgument
from tests.archive.conftest import Archived


async def _end(story: Archived, *jids: str) -> None:
    for jid in jids:
        await story.put(jid, 1)
        await story.cancel(jid)


async def _ids(story: Archived) -> list[str]:
    return [event.id for event in await story.events()]


async def test_unread_entries_are_not_trimmed_by_default(story: Archived) -> None:
    await story.configure(archive_length=10)
    await _end(story, *(f"j{n}" for n in range(300)))
    assert len(await _ids(story)) == 300


async def test_oldest_entries_are_trimmed_on_request_and_counted(story: Archived) -> None:
    await story.configure(archive_length=100, archive_when_full="count")
    await _end(story, *(f"j{n}" for n in range(450)))
    state = await Archive(story.store).state()
    assert 100 <= state.length < 300 and state.added == 450
    assert [event.jid for event in await story.events()][-1] == "j449"


async def test_only_stored_entries_are_trimmed(story: Archived) -> None:
    await _end(story, *(f"j{n}" for n in range(250)))
    ids = await _ids(story)
    assert await story.store.archive_trim(id=ids[219], reader="lake", now=5) == 220
    assert await _ids(story) == ids[220:]
    assert await story.store.archive_trim(id=ids[219], reader="lake", now=5) == 0


async def test_second_reader_does_not_trim_unread_entries_of_the_first(story: Archived) -> None:
    await _end(story, "a", "b")
    first, second = await _ids(story)
    await story.store.archive_trim(id=first, reader="lake", now=5)
    async with story.refused(InvalidArgument, argument="reader"):
        await story.store.archive_trim(id=second, reader="other", now=6)
    assert await Archive(story.store).trim(second, "other", takeover=True) == 1
    assert (await Archive(story.store).state()).reader == "other"


async def test_state_of_the_stream_is_readable(story: Archived) -> None:
    assert await Archive(story.store).state() == ArchiveState(True, "hold", 1_000_000, 0, 0)
    await _end(story, "a", "b")
    first, last = await _ids(story)
    await story.store.archive_trim(id=first, reader="lake", now=5.5)
    assert await Archive(story.store).state() == ArchiveState(
        True, "hold", 1_000_000, 1, 2, last, last, "lake", first, 5.5
    )


async def test_check_finds_no_problem_in_the_stream(story: Archived) -> None:
    await story.completed("a")
    await story.failed("b", 3, 4, 5)
    assert (await story.store.check(now=6, budget=10_000))["found"] == []
