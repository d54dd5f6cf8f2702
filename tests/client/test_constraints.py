"""Unique jobs, concurrency limits and rate limits, as options of put and of handlers."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, TypedDict

import pytest

from aioqless import Client, Fair, Handler, InvalidData, Job, Key, Limit, NewJob, Unique, job
from aioqless.client.constraints import encode_constraints
from aioqless.client.new_job import encode_job
from aioqless.client.put_options import TemplateOptions
from aioqless.errors import JobExists


@job(klass="Sync", unique=("customer",), limits=[Limit(("customer",), max_concurrency=1)])
async def sync(job: Job[Any], customer: int, full: bool = False) -> None: ...


@job(klass="Call", limits=[Limit("api", rate=(2, 3600))])
async def call(job: Job[Any], path: str) -> None: ...


@job(klass="Digest", unique=(), limits=[Limit(max_concurrency=3)])
async def digest(job: Job[Any]) -> None: ...


async def test_put_of_a_duplicate_returns_the_jid_of_the_existing_job(
    client: Client,
) -> None:
    mail = client.queue("mail")
    first = await mail.put("Greet", unique=Key("a"))
    assert await mail.put("Greet", unique=Key("a"), jid="second") == first
    assert await client.jobs.get("second") is None


async def test_put_of_a_duplicate_can_raise(client: Client) -> None:
    mail = client.queue("mail")
    first = await mail.put("Greet", unique=Key("a"))
    with pytest.raises(JobExists) as caught:
        await mail.put("Greet", unique=Key("a"), if_exists="raise")
    assert caught.value.jid == first
    with pytest.raises(JobExists):
        await mail.put("Greet", jid=first, if_exists="raise")
    assert await mail.put("Other", jid=first, if_exists="keep") == first
    found = await client.jobs.get(first)
    assert found and found.klass == "Greet"


async def test_unique_key_comes_from_the_data_and_the_klass(client: Client) -> None:
    mail = client.queue("mail")
    jids = await mail.put_many(
        [NewJob(sync, {"customer": 7}), sync.data(7, full=True), sync.data(customer=8)]
    )
    assert (jids[0] == jids[1], len(set(jids))) == (True, 2)
    assert await mail.put("Other", {"customer": 7}, unique=("customer",)) not in jids
    assert await mail.put("Sync", {"customer": 7, "x": 1}, unique=("customer",)) == jids[0]


async def test_options_of_put_override_those_of_the_handler(client: Client) -> None:
    mail = client.queue("mail")
    first = await mail.put(sync.data(7))
    assert await mail.put(sync.data(7), unique=Key("else")) != first
    assert json.loads(encode_job(NewJob(sync, {"customer": 1}, unique=Unique(("customer",), ttl=60),
        limits=[Limit(("customer",), max_concurrency=5)]), 1000)["constraints"] or b"") == {
        "unique": "Sync:[1]", "for": 60, "limits": [{"key": "Sync:[1]", "limit": 5}],
        "fields": {"unique": ["customer"], "limits": {"1": ["customer"]}},
    }  # fmt: skip


async def test_unique_key_without_fields_is_the_klass(client: Client) -> None:
    assert await client.queue("mail").put(digest) == await client.queue("post").put(digest)
    (limit,) = json.loads(encode_job(NewJob(digest), 1000)["constraints"] or b"")["limits"]
    assert limit["key"] == "Digest"


async def test_default_of_a_parameter_is_part_of_the_unique_key() -> None:
    constraints = TemplateOptions(unique=Unique(("customer", "full")))
    said, silent = ({"customer": 1, "full": False}, {"customer": 1})
    keys = [
        encode_constraints(constraints, "Sync", partial(sync.values, json.dumps(data).encode()))
        for data in (said, silent)
    ]
    assert keys[0] == keys[1]


class Spec(TypedDict):
    a: int
    b: dict[str, int]


@job(
    klass="Any",
    unique=("spec",),
    limits=[Limit(("spec",), max_concurrency=1)],
    fair=Fair(("spec",)),
)
async def any_spec(job: Job[Any], spec: dict[str, Any]) -> None: ...


@job(
    klass="Typed",
    unique=("spec",),
    limits=[Limit(("spec",), max_concurrency=1)],
    fair=Fair(("spec",)),
)
async def typed_spec(job: Job[Any], spec: Spec) -> None: ...


@pytest.mark.parametrize("handler", [any_spec, typed_spec], ids=lambda each: each.klass)
async def test_order_of_the_keys_of_a_dict_makes_no_other_key(
    client: Client, handler: Handler[...]
) -> None:
    one = {"a": 1, "b": {"x": 1, "y": 2}}
    other = {"b": {"y": 2, "x": 1}, "a": 1}
    first, second = (
        encode_job(NewJob(handler, {"spec": spec}), 1000)["constraints"] for spec in (one, other)
    )
    assert first == second and b'{\\"a\\":1,\\"b\\":{\\"x\\":1,\\"y\\":2}}' in (first or b"")
    mail = client.queue("mail")
    assert await mail.put(handler, {"spec": one}) == await mail.put(handler, {"spec": other})


async def test_too_long_unique_key_is_shortened() -> None:
    told = json.loads(
        encode_job(NewJob("K", {"text": "x" * 600}, unique=("text",)), 10_000)["constraints"] or b""
    )
    assert told["unique"].startswith("sha256:")


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (
            {"unique": 7},
            TypeError,
            "unique must be a tuple of the names of fields of the data, or a Key",
        ),
        ({"unique": Key("")}, ValueError, "unique must not be empty"),
        ({"fair": ("k",)}, TypeError, r"fair must be a Fair, such as Fair\(\('customer',\)\)"),
        ({"limits": Limit("k", rate=(1, 1))}, TypeError, "limits must be a list of Limit objects"),
    ],
)
async def test_invalid_constraints_are_refused_by_put_and_by_the_decorator(
    client: Client, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        await client.queue("mail").put("Greet", **options)
    with pytest.raises(error, match=told):
        job(**options)(lambda job: None)


async def test_unique_key_from_a_missing_field_is_refused(client: Client) -> None:
    with pytest.raises(
        InvalidData,
        match="unique of Greet is made of the field 'customer', which the data doesn't have",
    ):
        await client.queue("mail").put("Greet", {"x": 1}, unique=("customer",))
    with pytest.raises(
        ValueError, match="a key names the field custmer, but the function takes customer"
    ):

        @job(unique=("custmer",))
        async def wrong(job: Job[Any], customer: int) -> None: ...


async def test_if_exists_has_two_values(client: Client) -> None:
    with pytest.raises(ValueError, match="if_exists must be 'keep' or 'raise'"):
        await client.queue("mail").put("Greet", if_exists="move")  # type: ignore[arg-type]


async def test_string_is_no_key_since_a_field_may_be_meant(client: Client) -> None:
    """`("customer")` has no comma, and would be one key for all customers."""
    field: Any = "customer"
    told = (
        r"must be a tuple or a Key \(got 'customer'\): write \('customer',\) for one key per value "
        r"of the field 'customer', or Key\('customer'\) for one key"
    )
    with pytest.raises(TypeError, match=f"unique {told}"):
        job(unique=field)(lambda job: None)
    with pytest.raises(TypeError, match=f"unique {told}"):
        await client.put("Greet", {"customer": 7}, unique=field)
    with pytest.raises(TypeError, match=f"key {told}"):
        Unique(field)
    with pytest.raises(TypeError, match=f"by {told}"):
        Fair(field)


# Limit objects

TOKENS = Limit("tokens", rate=(1000, 60), cost="tokens")
CUSTOMER = Limit(("customer",), max_concurrency=2)


@job(klass="Ask", limits=[TOKENS, CUSTOMER, Limit(rate=(9, 60))])
async def ask(job: Job[Any], customer: int, tokens: int = 100) -> None: ...


def _limits(new: NewJob) -> Any:
    return json.loads(encode_job(new, 1000)["constraints"] or b"{}").get("limits")


async def test_limits_are_encoded_and_those_of_put_replace_those_of_the_handler() -> None:
    tokens = {"key": "tokens", "rate": [1000, 60]}
    customer = {"key": "Ask:[7]", "limit": 2}
    klass = {"key": "Ask", "rate": [9, 60]}
    assert _limits(ask.data(7)) == [{**tokens, "cost": 100}, customer, klass]
    assert _limits(ask.data(7, tokens=5)) == [{**tokens, "cost": 5}, customer, klass]
    assert _limits(NewJob(ask, {"customer": 7}, limits=[CUSTOMER])) == [customer]
    assert _limits(NewJob(ask, {"customer": 7}, limits=[])) is None
    assert _limits(NewJob("Other", limits=[Limit("k", rate=(5, 60), cost=2)])) == [
        {"key": "k", "rate": [5, 60], "cost": 2}
    ]


async def test_cost_above_the_limit_is_refused(client: Client) -> None:
    with pytest.raises(InvalidData, match="cost must be at most 1,000, the limit of 'tokens'"):
        await client.put(ask.data(customer=7, tokens=1001))
    for wrong in (-1, "many", True, None):
        with pytest.raises(InvalidData, match="tokens of Other: cost must be"):
            await client.put("Other", {"tokens": wrong}, limits=[TOKENS])
    with pytest.raises(InvalidData, match="cost of Other is made of the field 'tokens'"):
        await client.put("Other", {}, limits=[TOKENS])


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "told"),
    [
        (("k",), {}, ValueError, "needs a rate or a max_concurrency"),
        ((7,), {"max_concurrency": 1}, TypeError, "key must be a tuple"),
        (("",), {"max_concurrency": 1}, ValueError, "key must not be empty"),
        (
            ("k",),
            {"max_concurrency": 0},
            ValueError,
            r"max_concurrency must be an integer from 1 to 1,000 \(got 0\)",
        ),
        (("k",), {"max_concurrency": 1.5}, ValueError, "max_concurrency must be an integer"),
        (("k",), {"rate": 5}, TypeError, "rate must be a tuple"),
        (("k",), {"rate": (0, 60)}, ValueError, "rate must be an integer from 1 to 10,000"),
        (("k",), {"rate": (5, 0)}, ValueError, "rate's period must be more than 0 seconds"),
        (("k",), {"rate": (10_001, 60)}, ValueError, "rate must be an integer from 1 to 10,000"),
        (("k",), {"rate": (2 * 10**9, 60), "cost": 1}, ValueError, "rate must be an integer"),
        (("k",), {"max_concurrency": 1, "cost": 1}, ValueError, "cost needs a rate"),
        (("k",), {"rate": (5, 60), "cost": 6}, ValueError, "cost must be at most 5"),
        (("k",), {"rate": (5, 60), "cost": -1}, ValueError, "cost must be"),
    ],
)
async def test_invalid_limit_is_refused_when_it_is_made(
    arguments: tuple[Any, ...], options: dict[str, Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        Limit(*arguments, **options)


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"ttl": 0}, ValueError, "ttl must be more than 0"),
        ({"until": "never"}, ValueError, "until must be 'started' or 'done'"),
        ({"until": "done", "ttl": 5}, ValueError, "until and ttl are mutually exclusive"),
        ({"until": "done", "debounce": 5}, ValueError, "until and debounce are mutually exclusive"),
        ({"ttl": 5, "debounce": 5}, ValueError, "ttl and debounce are mutually exclusive"),
        ({"debounce": "5"}, TypeError, "debounce .*timedelta"),
        ({"debounce_max": 5}, ValueError, "debounce_max needs debounce"),
        (
            {"debounce": 30, "debounce_max": 29},
            ValueError,
            r"debounce_max must be at least debounce, 30 s \(got 29\)",
        ),
    ],
)
async def test_invalid_unique_is_refused_when_it_is_made(
    options: dict[str, Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        Unique(("k",), **options)


async def test_invalid_keys_and_weights_are_refused_when_they_are_made() -> None:
    keys: list[Any] = [7, ("a", 7)]
    for key in keys:
        with pytest.raises(TypeError, match="key must be a tuple of the names of fields"):
            Unique(key)
        with pytest.raises(TypeError, match="by must be a tuple of the names of fields"):
            Fair(key)
    for weight in (0, 101):
        with pytest.raises(ValueError, match=r"weight must be from 0.01 to 100"):
            Fair(("k",), weight)


async def test_more_than_four_limits_or_other_objects_are_refused(client: Client) -> None:
    limits = [Limit(f"k{n}", max_concurrency=1) for n in range(5)]
    with pytest.raises(ValueError, match=r"at most 4 limits \(got 5\)"):
        await client.put("Other", limits=limits)
    with pytest.raises(ValueError, match=r"at most 4 limits \(got 5\)"):
        job(limits=limits)(lambda job: None)
    with pytest.raises(TypeError, match="limits must be a list of Limit objects"):
        await client.put("Other", limits=["k"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="names the field token, but the function takes"):

        @job(limits=[Limit("k", rate=(5, 60), cost="token")])
        async def wrong(job: Job[Any], tokens: int) -> None: ...
