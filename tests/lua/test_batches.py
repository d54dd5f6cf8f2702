"""put_many and complete_many: rows without their last arguments, and pruning."""

from aioqless.store import CompleteManyRow
from tests.lua.story import Story


async def test_rows_may_leave_out_their_last_arguments(story: Story) -> None:
    done = ("a", "K", "{}", "b", "K", "[1]")
    assert await story.by_hand("put_many", ["mail"], 1, "2/3", *done) == [b"a", b"b"]
    assert (await story.job("b"))["data"] == "[1]"
    later = ("c", "K", "{}", 9, "d", "K", "{}", "")
    assert await story.by_hand("put_many", ["mail"], 1, "2/4", *later, "existing", "keep") == [
        b"c", b"d",
    ]  # fmt: skip
    assert [(await story.job(jid))["state"] for jid in "cd"] == ["scheduled", "waiting"]


async def test_batch_prunes_twenty_jobs_and_two_for_each_completion(story: Story) -> None:
    for n in range(50):
        await story.completed(f"old{n}", n, n, n)
    await story.configure(jobs_history=10)
    for jid in "abc":
        await story.running(jid, 1000, 1000)
    batch: list[CompleteManyRow] = [{"jid": jid, "queue": "mail"} for jid in "abc"]
    await story.store.complete_many(worker="ann", now=1001, batch=batch)
    assert len(await story.scores("completed")) == 50 + 3 - 26
