"""Scripts called with random arguments."""

from __future__ import annotations

import os
import random
import re

import pytest
from redis.exceptions import ResponseError

from aioqless import Client, NewJob
from aioqless.store.command_header import command_names
from aioqless.store.script_composer import compose
from tests.security.nasty import text

CALLS = int(os.environ.get("AIOQLESS_FUZZ_CALLS", "20"))  # of each command


@pytest.mark.parametrize("name", command_names())
async def test_script_with_random_arguments_replies_or_refuses_with_a_code(
    client: Client, name: str
) -> None:
    await client.queue("mail").put_many([NewJob("Greet", jid=jid, tags=["x"]) for jid in "abc"])
    await client.queue("mail").pop(worker="worker")
    script, chance = compose(name, client.namespace), random.Random(name)
    for _ in range(CALLS):
        keys = (
            [client.namespace.encode() + b":q:" + text(chance)]
            if chance.random() < 0.8
            else [text(chance) for _ in range(chance.randrange(3))]
        )
        arguments = [text(chance) for _ in range(chance.randrange(14))]
        try:
            await client.internals.store.connection.execute(
                "EVAL", script.text, len(keys), *keys, *arguments
            )
        except ResponseError as refused:
            assert re.match(r"[A-Z]+ \{", str(refused)), (name, keys, arguments, str(refused))
    assert await client.check(resolve=True) is not None
    assert await client.check() == []
