"""The master of a service, as sentinels name it."""

from __future__ import annotations

import asyncio

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from aioqless.errors import AioqlessError
from aioqless.redis.address import Address, Endpoint
from aioqless.redis.redis_py import not_found, query


class Sentinels:
    """Asks all sentinels and believes the one that knows of the latest fail-over."""

    def __init__(self, address: Address) -> None:
        self.address = address

    async def find(self) -> Endpoint:
        """Return the address of the master.

        Raises:
            AioqlessError: No sentinel knows the service.
            redis.exceptions.ConnectionError: No sentinel answers.
        """
        answers = await asyncio.gather(
            *(self._ask(sentinel) for sentinel in self.address.endpoints), return_exceptions=True
        )
        if known := [answer for answer in answers if isinstance(answer, tuple)]:
            return max(known)[1]
        refusals = [answer for answer in answers if isinstance(answer, exceptions.ResponseError)]
        if len(refusals) == len(answers):
            raise AioqlessError(
                f"no sentinel of {self.address} knows the service {self.address.service!r}: "
                f"{refusals[0]}"
            )
        why = next((each for each in answers if str(each)), "no sentinel answers")
        raise not_found(self.address, why)

    async def check(self, connection: AbstractConnection) -> None:
        """Check that the server is a master.

        A sentinel may name one that has just become a replica, or that was restarted and isn't the
        master again yet.
        """
        await connection.send_command("ROLE", check_health=False)
        role = await connection.read_response()
        if role[0] != b"master":
            raise exceptions.ConnectionError(
                f"the server that the sentinels of {self.address} name is a {role[0].decode()}"
            )

    def handle_redirect(self, error: Exception) -> bool:  # noqa: ARG002  # of the protocol
        """Connect again: the sentinels are asked before the next attempt anyway."""
        return True

    async def _ask(self, sentinel: Endpoint) -> tuple[int, Endpoint]:
        """Return how many fail-overs a sentinel knows of, and the master.

        Both are asked for: during a fail-over, `SENTINEL MASTER` has the number of the new one and
        still the address of the old master.
        """
        service = self.address.service
        questions = (
            ("SENTINEL", "MASTER", service),
            ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service),
        )
        fields, master = await query(
            sentinel, self.address, self.address.sentinel_login, *questions
        )
        by_name = dict(zip(fields[::2], fields[1::2], strict=True))
        return int(by_name.get(b"config-epoch", 0)), (master[0].decode(), int(master[1]))
