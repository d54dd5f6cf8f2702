"""A test namespace with the archive enabled."""

from __future__ import annotations

import json

import pytest
from redis.asyncio import Redis

from aioqless.client.archive import Archive
from aioqless.contrib.archive import Event, parse
from aioqless.store import ScriptStore
from tests.lua.story import Story


class Archived(Story):
    """A namespace whose archive is enabled."""

    async def entries(self) -> list[dict[str, str]]:
        """Return all entries as they are stored."""
        return [fields for _, fields in await self._read("x:archive", [])]

    async def events(self) -> list[Event]:
        return [parse(id, fields) for id, fields in await self._read("x:archive", [])]

    async def event(self) -> Event:
        """Return the only event."""
        (event,) = await self.events()
        return event

    async def write_as_qless(
        self, jid: str, at: float, *, fails: bool = False, worker: str = "ruby"
    ) -> None:
        """Write what a live qless client writes when its worker has popped and ended a job."""
        key = f"j:{jid}"
        if fails:
            failure = f'{{"group":"theirs","message":"no","when":{int(at)},"worker":"{worker}"}}'
            await self.change(
                "HSET", key, "state", "failed", "worker", "", "expires", "", "failure", failure
            )
            await self.change(
                "RPUSH",
                f"{key}-history",
                f'[{int(at)},"failed",{{"worker":"{worker}","group":"theirs"}}]',
            )
            await self.change("SADD", "failures", "theirs")
            await self.change("LPUSH", "f:theirs", jid)
        else:
            fields = (
                "state",
                "complete",
                "worker",
                "",
                "expires",
                0,
                "queue",
                "",
                "failure",
                "{}",
                "time",
                f"{at:.20f}",
            )
            await self.change("HSET", key, *fields)
            await self.change("RPUSH", f"{key}-history", f'[{int(at)},"done"]')
            await self.change("ZADD", "completed", at, jid)
        await self.change("ZREM", "q:mail-locks", jid)
        await self.change("DEL", f"w:{worker}:jobs")

    async def pop_as_qless(self, jid: str, at: float, worker: str = "ruby") -> None:
        await self.change("ZREM", "q:mail-work", jid)
        # Other clients move the put from the hash to the list before they append to it.
        for stage in json.loads((await self.job(jid)).get("history", "[]")):
            put = json.dumps([int(stage["put"]), "put", {"q": stage["q"]}], separators=(",", ":"))
            await self.change("RPUSH", f"j:{jid}-history", put)
        await self.change("HDEL", f"j:{jid}", "history")
        await self.change(
            "HSET",
            f"j:{jid}",
            "state",
            "running",
            "worker",
            worker,
            "expires",
            at + 60,
            "time",
            f"{at:.20f}",
        )
        await self.change(
            "RPUSH", f"j:{jid}-history", f'[{int(at)},"popped",{{"worker":"{worker}"}}]'
        )
        await self.change("ZADD", "q:mail-locks", at + 60, jid)

    async def sweep(self) -> int:
        """Run the sweep and return the number of archived ends."""
        return (await Archive(self.store).sweep()).found


@pytest.fixture
async def story(store: ScriptStore, redis: Redis) -> Archived:
    story = Archived(store, redis)
    await story.configure(archive="on")
    return story
