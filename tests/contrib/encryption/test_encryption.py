"""Encryption and signing of data and results."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from aioqless import Client, Job, NewJob, Settings, Worker, chain, group, job
from aioqless.contrib.encryption import Encryption
from aioqless.errors import DecryptionError
from tests.conftest import Until, existing_job
from tests.worker import in_processes

KEY, OLD, OTHERS = Encryption.new_key(), Encryption.new_key(), Encryption.new_key()
SECRET = {"card": "4929 1234", "sum": 12.5, "text": "Grüße, \\ \u0000"}

With = Callable[..., AbstractAsyncContextManager[Client]]


seen: list[Any] = []


@job(klass="Charge")
async def charge(job: Job[Any], card: str, sum: float = 0) -> None:
    seen.append((card, sum))
    job.data["done"] = True


@pytest.fixture
def encrypted(redis_url: str, namespace: str) -> With:
    """Open a client with encryption: `async with encrypted(KEY, mode="sign") as client`."""

    @asynccontextmanager
    async def encrypted(*keys: str, **options: Any) -> AsyncIterator[Client]:
        async with Client(
            redis_url, namespace=namespace, codec=Encryption(*keys, **options) if keys else None
        ) as client:
            yield client

    seen.clear()
    return encrypted


async def test_plain_text_of_encrypted_data_is_not_in_redis(encrypted: With) -> None:
    async with encrypted(KEY) as client:
        jid = await client.queue("mail").put("Charge", SECRET)
        stored = json.dumps(
            {
                repr(name): repr(value)
                for name, value in (
                    await client.redis.hgetall(f"{client.namespace}:j:{jid}")
                ).items()
            }
        )
    assert "aioqless-encrypted" in stored and "4929 1234" not in stored and "card" not in stored


async def test_signed_data_is_readable_without_a_key(encrypted: With, client: Client) -> None:
    async with encrypted(KEY, mode="sign") as signing:
        jid = await signing.queue("mail").put("Charge", SECRET)
    found = await client.jobs.get(jid)
    assert found is not None and json.loads(found.raw_data)["data"] == SECRET


@pytest.mark.parametrize("mode", ["encrypt", "sign"])
async def test_worker_decrypts_jobs_and_encrypts_changed_data(
    encrypted: With, mode: str, until: Until
) -> None:
    async with encrypted(KEY, mode=mode, required=True) as client:
        jid = await client.queue("mail").put(charge, {"card": "4929", "sum": 3})
        async with Worker(client, charge, settings=Settings(queues=("mail",))):
            done = await client.jobs.wait(jid, 60)
        assert seen == [("4929", 3)] and done.data == {"card": "4929", "sum": 3, "done": True}
        assert "aioqless-encrypted" in done.raw_data or "aioqless-signed" in done.raw_data


async def test_process_handler_gets_decrypted_data_and_no_key(
    encrypted: With, until: Until
) -> None:
    async with encrypted(KEY, required=True) as client:
        jid = await client.queue("mail").put(in_processes.resize, {"path": "a.png"}, jid="a")
        async with Worker(client, in_processes.resize, settings=Settings(queues=("mail",))):
            await until(lambda: client.queue("billing").jids("waiting"))
        moved = await client.jobs.get(jid)
        assert moved is not None and moved.data["width"] == 100 and moved.data["jid"] == "a"
        assert "aioqless-encrypted" in moved.raw_data


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ((), "this client has no key"),
        ((OTHERS,), "encrypted with an unknown key"),
    ],
)
async def test_job_fails_in_its_own_group_without_the_key(
    encrypted: With, keys: tuple[str, ...], why: str
) -> None:
    async with encrypted(KEY) as client:
        jid = await client.queue("mail").put(charge, {"card": "4929"})
    async with (
        encrypted(*keys) as client,
        Worker(client, charge, settings=Settings(queues=("mail",))),
    ):
        failed = await client.jobs.wait(jid, 60)
    assert (
        failed.failure is not None
        and failed.failure.group == "mail-DecryptionError"
        and why in failed.failure.message
    )
    assert seen == []


async def test_unencrypted_jobs_are_refused_if_encryption_is_required(
    encrypted: With, client: Client
) -> None:
    jid = await client.queue("mail").put(charge, {"card": "forged"})
    async with (
        encrypted(KEY, required=True) as strict,
        Worker(strict, charge, settings=Settings(queues=("mail",))),
    ):
        failed = await strict.jobs.wait(jid, 60)
    assert (
        failed.failure is not None
        and "neither encrypted nor signed" in failed.failure.message
        and seen == []
    )


async def test_unencrypted_jobs_are_read_if_encryption_is_optional(
    encrypted: With, client: Client
) -> None:
    jid = await client.queue("mail").put("Charge", {"card": "4929"})
    async with encrypted(KEY) as other:
        assert (await existing_job(other, jid)).data == {"card": "4929"}


@pytest.mark.parametrize("mode", ["encrypt", "sign"])
async def test_data_encrypted_for_one_klass_is_refused_for_another(
    encrypted: With, mode: str
) -> None:
    async with encrypted(KEY, mode=mode) as client:
        jid = await client.queue("mail").put("Greet", SECRET)
        await client.redis.hset(f"{client.namespace}:j:{jid}", "klass", "Charge")
        with pytest.raises(DecryptionError, match="another klass"):
            _ = (await existing_job(client, jid)).data


async def test_changed_signed_data_is_refused(encrypted: With) -> None:
    async with encrypted(KEY, mode="sign") as client:
        jid = await client.queue("mail").put("Charge", {"sum": 1})
        found = await existing_job(client, jid)
        await client.redis.hset(
            f"{client.namespace}:j:{jid}", "data", found.raw_data.replace('"sum":1', '"sum":9')
        )
        await found.refresh()
        with pytest.raises(DecryptionError, match="was changed"):
            _ = found.data


async def test_keys_are_rotated_by_prepending_the_new_one(encrypted: With) -> None:
    async with encrypted(OLD) as client:
        jid = await client.queue("mail").put("Charge", SECRET)
    async with encrypted(KEY, OLD) as client:
        assert (await existing_job(client, jid)).data == SECRET
        newer = await client.queue("mail").put("Charge", SECRET)
    async with encrypted(OLD) as client:
        with pytest.raises(DecryptionError):
            _ = (await existing_job(client, newer)).data


async def test_workflows_and_recurring_jobs_are_encrypted_and_readable_after_changes(
    encrypted: With,
) -> None:
    async with encrypted(KEY, required=True) as client:
        queue = client.queue("mail")
        flow = await queue.put_flow(chain(NewJob("Charge", {"n": 1}), NewJob("Charge", {"n": 2})))
        assert [found.data for found in await client.jobs.multiget(*flow.jids)] == [
            {"n": 1},
            {"n": 2},
        ]
        template = await queue.recur("Charge", {"n": 3}, every=60, jid="r")
        await template.update(klass="Refund")
        assert template.data == {"n": 3}
        instance = await client.jobs.get(await template.run_now())
        assert instance is not None and (instance.klass, instance.data) == ("Refund", {"n": 3})
        await template.update(data={"n": 4})
        assert template.data == {"n": 4} and "aioqless-encrypted" in template.raw_data


@job(klass="Weigh", result_ttl=60)
async def weigh(job: Job[Any], value: Any) -> Any:
    return value


@job(klass="Sum", result_ttl=60)
async def add(job: Job[Any]) -> Any:
    return list((await job.results()).values())


VALUES = [
    None,
    False,
    "4929 1234",
    1e300,
    0.1,
    12345678901234567890123,
    {"": [{"Grüße": "\u2028\x00\\"}]},
    {"aioqless-encrypted": "no"},
]


@pytest.mark.parametrize("mode", ["encrypt", "sign"])
async def test_results_are_encrypted_and_decrypted_for_waiters_and_dependents(
    encrypted: With, mode: str
) -> None:
    async with (
        encrypted(KEY, mode=mode, required=True) as client,
        Worker(client, weigh, add, settings=Settings(queues=("mail",), poll=0.05)),
    ):
        flow = await client.queue("mail").put_flow(
            chain(group(*(weigh.data(value=value) for value in VALUES)), add.data())
        )
        *weighed, last = flow.jids
        assert sorted(map(repr, await (await existing_job(client, last)).outcome(10))) == sorted(
            map(repr, VALUES)
        )
        assert [await client.jobs.result(jid) for jid in weighed] == VALUES
        kept = [await client.redis.get(f"{client.namespace}:x:result:{jid}") for jid in flow.jids]
    assert all(
        f"aioqless-{'encrypted' if mode == 'encrypt' else 'signed'}".encode() in each
        for each in kept
    )
    assert any(b"4929 1234" in each for each in kept) == (mode == "sign")


@pytest.mark.parametrize("mode", ["encrypt", "sign"])
async def test_result_of_another_job_or_changed_or_unencrypted_is_refused(
    encrypted: With, mode: str
) -> None:
    async with encrypted(KEY, mode=mode, required=True) as client:
        async with Worker(client, weigh, settings=Settings(queues=("mail",), poll=0.05)):
            mine, other = [
                await client.queue("mail").put(weigh.data(value=number)) for number in (1, 2)
            ]
            for jid in (mine, other):
                await (await existing_job(client, jid)).wait(60)
        redis, key = client.redis, f"{client.namespace}:x:result:"
        fence, _, text = (await redis.get(key + mine)).partition(b" ")  # type: ignore[arg-type]
        for proxied_client in (
            (await redis.get(key + other)).partition(b" ")[2],  # type: ignore[arg-type]
            text.replace(b"A", b"B").replace(b'"1"', b'"7"'),  # type: ignore[arg-type]
            b"7",
        ):
            await redis.set(key + mine, fence + b" " + proxied_client)
            with pytest.raises(DecryptionError, match=mine):
                await client.jobs.result(mine)
    async with encrypted() as without:
        with pytest.raises(DecryptionError, match="no key"):
            await without.jobs.result(other)


async def test_result_is_not_accepted_as_data(encrypted: With) -> None:
    async with encrypted(KEY, required=True) as client:
        async with Worker(client, weigh, settings=Settings(queues=("mail",), poll=0.05)):
            jid = await client.queue("mail").put(weigh.data(value={"card": "x"}))
            await (await existing_job(client, jid)).wait(60)
        _, _, text = (await client.redis.get(f"{client.namespace}:x:result:{jid}")).partition(b" ")  # type: ignore[arg-type]
        other = await client.queue("mail").put("Charge", SECRET)
        await client.redis.hset(f"{client.namespace}:j:{other}", "data", text)
        with pytest.raises(DecryptionError):
            _ = (await existing_job(client, other)).data


async def test_failed_job_retried_with_other_data_is_encrypted_again(encrypted: With) -> None:
    async with encrypted(KEY, required=True) as client:
        jid = await client.queue("mail").put("Charge", {"n": 1})
        (popped,) = await client.queue("mail").pop()
        await popped.fail("why", group="broken")
        await client.jobs.retry(jid, data={"n": 2})
        (popped,) = await client.queue("mail").pop()
        assert popped.data == {"n": 2} and "aioqless-encrypted" in popped.raw_data


async def test_data_that_looks_encrypted_is_ordinary_data(client: Client) -> None:
    given = {"aioqless-encrypted": 1, "why": "not"}
    assert (
        await existing_job(client, await client.queue("mail").put("Charge", given))
    ).data == given


def test_invalid_key_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match="key 2 of the encryption is not 32 bytes") as refused:
        Encryption(KEY, "hunter2")
    assert "hunter2" not in str(refused.value)


def test_environment_configures_the_command_line() -> None:
    assert Encryption.from_environment({}) is None
    codec = Encryption.from_environment(
        {
            "AIOQLESS_ENCRYPTION_KEYS": f"{KEY}, {OLD}",
            "AIOQLESS_ENCRYPTION_MODE": "sign",
            "AIOQLESS_ENCRYPTION_REQUIRED": "1",
        }
    )
    assert codec is not None and (codec.mode, codec.required, repr(codec)) == (
        "sign",
        True,
        "<Encryption mode='sign' keys=2 required=True>",
    )


def test_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(Exception, match=re.escape('pip install "aioqless[encryption]"')):
        Encryption(KEY)
