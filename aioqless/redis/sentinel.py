"""The server that sentinels say is the master of a service."""

from __future__ import annotations

import asyncio

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from aioqless.errors import AioqlessError
from aioqless.redis.address import Address, Endpoint
from aioqless.redis.redis_py import asked, nobody


class Sentinels:
    """All are asked, and the one that knows of the latest fail-over is believed: another may have
    missed it."""

    def __init__(self, address: Address) -> None:
        self.address = address

    async def find(self) -> Endpoint:
        answers = await asyncio.gather(
            *(self._ask(sentinel) for sentinel in self.address.endpoints), return_exceptions=True
        )
        if known := [answer for answer in answers if isinstance(answer, tuple)]:
            return max(known)[1]
        strangers = [answer for answer in answers if isinstance(answer, exceptions.ResponseError)]
        if len(strangers) == len(answers):
            raise AioqlessError(
                f"no sentinel of {self.address} tells of the service {self.address.service!r}: {strangers[0]}"
            )
        raise nobody(
            self.address, next((each for each in answers if str(each)), "no sentinel answers")
        )

    async def check(self, connection: AbstractConnection) -> None:
        """A sentinel may name a master that has just been made a replica, or isn't yet one again
        after it was restarted."""
        await connection.send_command("ROLE", check_health=False)
        role = await connection.read_response()
        if role[0] != b"master":
            raise exceptions.ConnectionError(
                f"the server that the sentinels of {self.address} name is a {role[0].decode()} just now"
            )

    def heed(self, error: Exception) -> None:
        pass

    async def _ask(self, sentinel: Endpoint) -> tuple[int, Endpoint]:
        """Of how many fail-overs it knows, and the master. Both are asked for: in the midst of a
        fail-over, what `SENTINEL MASTER` tells of has the number of the new one and still the
        address of the old."""
        service = self.address.service
        questions = (
            ("SENTINEL", "MASTER", service),
            ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service),
        )
        told, master = await asked(sentinel, self.address, self.address.sentinel_login, *questions)
        by_name = dict(zip(told[::2], told[1::2], strict=True))
        return int(by_name.get(b"config-epoch", 0)), (master[0].decode(), int(master[1]))
