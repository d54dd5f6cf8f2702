"""fail: sets a job aside in a failure group."""

from aioqless.errors import InvalidArgument
from tests.lua.story import Story, score


async def test_failed_job_is_kept_in_its_group(story: Story) -> None:
    await story.running("a")
    assert await story.fail("a", 2, group="upload error", message="disk full") == "a"
    assert (await story.members("failures"), await story.items("f:upload error")) == (
        {"upload error"},
        ["a"],
    )
    job = await story.get("a")
    assert (job["state"], job["worker"], job["expires"], job["queue"]) == ("failed", "", 0, "mail")
    assert job["failure"] == {
        "group": "upload error",
        "message": "disk full",
        "when": 2,
        "worker": "ann",
    }


async def test_failed_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", 0, retries=3, priority=-1, tags=["x"])
    await story.pop(1)
    await story.fail("a", 2.9, message='say "no"')
    stored = {
        name: value for name, value in (await story.job("a")).items() if not name.startswith("x-")
    }
    assert stored == {
        "jid": "a", "klass": "Greet", "data": "{}", "priority": "1", "tags": '["x"]',
        "state": "failed", "worker": "", "expires": "",
        "queue": "mail", "retries": "3", "remaining": "3", "time": "1." + 6 * "0",
        "failure": '{"group":"typo","message":"say \\"no\\"","when":2,"worker":"ann"}',
        "history": "[]",
    }  # fmt: skip
    assert (await story.items("j:a-history"))[2:] in (
        ['[2,"failed",{"worker":"ann","group":"typo"},0.900000]'],
        ['[2,"failed",{"group":"typo","worker":"ann"},0.900000]'],
    )


async def test_message_may_be_empty_and_group_may_not(story: Story) -> None:
    await story.running("a")
    async with story.refused(InvalidArgument, argument="group"):
        await story.fail("a", 2, group="")
    await story.fail("a", 2, message="")
    assert (await story.get("a"))["failure"]["message"] == ""


async def test_dependents_of_a_failed_job_stay_held(story: Story) -> None:
    await story.running("a")
    await story.put("b", 2, depends=["a"])
    await story.fail("a", 3)
    assert (await story.state("b"), await story.members("j:a-dependents")) == ("depends", {"b"})


async def test_failed_jobs_do_not_expire(story: Story) -> None:
    await story.configure(jobs_history=10, jobs_history_count=0)
    await story.failed("a")
    await story.completed("b", 1000, 1001, 1002)
    assert (await story.state("a"), await story.state("b")) == ("failed", None)


# Failed by an operator


async def test_operator_may_fail_a_waiting_job(story: Story) -> None:
    await story.put("a", 0)
    assert await story.fail("a", 2, worker="") == "a"
    assert (await story.where("a"), await story.items("f:typo")) == ({}, ["a"])
    assert (await story.get("a"))["failure"] == {
        "group": "typo",
        "message": "no such word",
        "when": 2,
        "worker": "",
    }
    assert (await story.get("a"))["history"][-1] == {
        "when": 2,
        "what": "failed",
        "worker": "",
        "group": "typo",
    }
    assert await story.day() == {"failures": "1", "failed": "1"}


async def test_dependent_job_failed_by_an_operator_has_no_dependencies(story: Story) -> None:
    await story.put("b", 0)
    await story.put("a", 1, depends=["b"], delay=100)
    await story.fail("a", 2, worker="")
    assert (await story.where("a"), await story.state("a")) == ({}, "failed")
    assert not await story.exists("j:a-dependencies")
    assert not await story.exists("j:b-dependents")
    assert "scheduled" not in await story.job("a")
    await story.pop(3)
    await story.complete("b", 4)
    assert await story.state("a") == "failed"
    assert await story.store.unfail(queue="mail", group="typo", now=5) == 1
    assert await story.where("a") == {"work": score(0, 5)}
