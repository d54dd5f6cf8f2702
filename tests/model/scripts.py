"""Calls of the real scripts: the only module that knows their calling conventions."""

import asyncio
import json
from typing import Any

from redis import Redis

from aioqless.errors import ScriptError
from aioqless.redis.connection import Connection
from aioqless.redis.encoding import decode_text
from aioqless.store import ScriptStore
from tests.command_calls import make_call
from tests.model.arguments import REFUSALS, Refusal
from tests.model.keyspace import keyspace

FORGET = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end"


class RealScripts:
    """The scripts of one namespace of a real Redis, called like the model.

    A call returns the reply or raises Refusal. In the reply of a batch, a refusal is its code.
    """

    def __init__(self, url: str, namespace: str) -> None:
        self.namespace = namespace
        self.redis = Redis.from_url(url, decode_responses=True, encoding_errors="surrogateescape")
        self._channels = self.redis.pubsub()
        self._channels.psubscribe(f"{namespace}:*")
        self._runner = asyncio.Runner()
        self._connection = Connection(url)
        self._store = ScriptStore(self._connection, namespace)

    def __enter__(self) -> "RealScripts":
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
        self._runner.run(self._connection.aclose())
        self._runner.close()
        self._channels.close()
        self.redis.close()

    def call(self, command: str, /, *words: str, **given: Any) -> Any:
        try:
            reply = comparable(
                self._runner.run(self._store.send(make_call(self._store, command, *words, **given)))
            )
        except ScriptError as refused:
            raise Refusal(refused.code, str(refused)) from None
        if command == "pop_many":
            return [
                decode_text(row[0]) for row in reply[0]
            ]  # the other fields of the reply are not specified here
        if command == "clear":
            return {**reply, "kept": [jid for jid, _ in reply["kept"]]}
        if command == "heartbeat_many":  # lists contain numbers as strings
            return [answer if answer in REFUSALS else float(answer) for answer in reply]
        return reply

    def reset(self) -> None:
        self.redis.eval(FORGET, 0, f"{self.namespace}:*")
        self.published()

    def keys(self) -> dict[str, Any]:
        return keyspace(self.redis, self.namespace)

    def clock(self) -> float:
        seconds, microseconds = self.redis.time()
        return seconds + microseconds / 1e6

    def published(self) -> list[tuple[str, Any]]:
        """Return the messages published since the last call, in order.

        Messages on the scripts' own channels are left out.
        """
        end = f"{self.namespace}:end"
        self.redis.publish(end, "")
        heard = []
        while (message := self._channels.get_message(timeout=60)) and message["channel"] != end:
            if message["type"] == "pmessage" and not message["channel"].startswith(
                f"{self.namespace}:x:"
            ):
                text = message["data"]
                heard.append(
                    (message["channel"], json.loads(text) if text.startswith("{") else text)
                )
        return heard


def comparable(reply: Any) -> Any:
    """Return the reply with refusals as codes, and lists without specified order sorted."""
    match reply:
        case ScriptError():
            return reply.code
        case dict():
            free = ("dependents", "dependencies")
            return {
                key: sorted(value) if key in free else comparable(value)
                for key, value in reply.items()
            }
        case list():
            return [comparable(one) for one in reply]
    return reply
