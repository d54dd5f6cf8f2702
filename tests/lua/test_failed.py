"""failed: how many jobs failed in each group, or the jobs of one group."""

from tests.lua.story import Story


async def test_group_is_paged_with_its_total(story: Story) -> None:
    for n in range(27):
        await story.failed(f"j{n:02}", n, n, n)

    async def page(**given: int) -> tuple[int, list[str]]:
        found = await story.store.failed(group="typo", **given)
        return found["total"], [job["jid"] for job in found["jobs"]]

    assert await page() == (27, [f"j{n:02}" for n in range(26, 1, -1)])
    assert await page(offset=25) == (27, ["j01", "j00"])
    assert await page(offset=1, count=2) == (27, ["j25", "j24"])
    assert await page(offset=0, count=0) == (27, [])


async def test_deleted_job_is_omitted_from_its_group(story: Story) -> None:
    await story.failed("a")
    await story.change("LPUSH", "f:typo", "ghost")
    assert [job["jid"] for job in (await story.store.failed(group="typo"))["jobs"]] == ["a"]
