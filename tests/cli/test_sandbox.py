"""A working directory for each process: `--sandbox`."""

from __future__ import annotations

from pathlib import Path

from aioqless import Client
from tests.cli.conftest import Aioqless, Start
from tests.conftest import Until


async def where(client: Client, until: Until) -> dict[str, str]:
    """Record the working directory of a job."""
    jid = await client.queue("mail").put("Where")

    async def done() -> dict[str, str] | None:
        job = await client.jobs.get(jid)
        return job.data if job and job.state == "complete" else None

    found: dict[str, str] = await until(done)
    return found


def exists(path: str) -> bool:
    return Path(path).exists()


async def test_each_process_has_its_own_working_directory(
    folder: Path, client: Client, start: Start, until: Until
) -> None:
    async with start("--sandbox", "boxes", "-w", "2") as worker:
        await until(lambda: len(worker.logged("process.became_ready")) == 2)
        boxes = {line["directory"] for line in worker.logged("worker.sandboxed")}
        assert boxes == {str(folder / "boxes" / name) for name in ("process-1", "process-2")}
        found = await where(client, until)
        assert (
            found["cwd"] in boxes
            and found["tmp"] == found["cwd"] + "/tmp"
            and found["scratch"].startswith(found["tmp"] + "/aioqless-")
        )
        assert not exists(found["scratch"])


async def test_directory_of_a_killed_process_is_deleted_when_another_starts(
    folder: Path, client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Litter")
    box = folder / "boxes" / "process-1"
    async with start("--sandbox", "boxes") as worker:
        await until(lambda: [*box.glob("tmp/*/large")])
        worker.process.kill()
        await worker.ended()
    assert (box / "litter").exists()
    async with start("--sandbox", "boxes"):
        found = await where(client, until)
    assert (found["cwd"], found["files"]) == (str(box), ["tmp"])  # type: ignore[comparison-overlap]


async def test_directory_in_use_is_not_deleted(
    folder: Path, client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Litter")
    async with start("--sandbox", "boxes") as worker:
        await until(lambda: worker.logged("job.started"))
        async with start("--sandbox", "boxes") as other:
            assert other.logged("worker.sandboxed")[0]["directory"] == str(
                folder / "boxes" / "process-2"
            )
            await until((folder / "boxes" / "process-1" / "litter").exists)


async def test_jobs_run_in_the_workers_directory_without_sandbox(
    folder: Path, client: Client, start: Start, until: Until
) -> None:
    async with start():
        found = await where(client, until)
    assert found["cwd"] == str(folder) and not exists(found["scratch"])


async def test_sandbox_that_cannot_be_created_is_refused(aioqless: Aioqless) -> None:
    ended = await aioqless("worker", "jobs", "--sandbox", "jobs.py")
    assert ended.code == 1 and "jobs.py can't be a sandbox" in ended.err
