"""Resources: providers, dependencies, and the order in which they are opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, NewType

import pytest

from aioqless import AioqlessError, Inject, Job, job, resource
from aioqless.handlers import Resources
from aioqless.testing import perform


class Pool: ...


class Repository:
    def __init__(self, pool: Pool) -> None:
        self.pool = pool


Replica = NewType("Replica", Pool)
happened: list[str] = []


@resource
async def repository(pool: Pool = Inject) -> AsyncIterator[Repository]:
    happened.append("repository opens")
    yield Repository(pool)
    happened.append("repository closes")


@resource
async def pool() -> AsyncIterator[Pool]:
    happened.append("pool opens")
    yield Pool()
    happened.append("pool closes")


@resource
async def replica() -> AsyncIterator[Replica]:
    yield Replica(Pool())


@job
async def store(
    job: Job[Any], path: str, pool: Pool = Inject, *, replica: Replica = Inject
) -> None: ...


async def test_resource_is_opened_after_its_dependencies_and_closed_before_them() -> None:
    happened.clear()
    resources = Resources([repository, pool])
    async with resources.opened():
        filled = resources.values({"one": Repository, "other": Pool})
        assert filled["one"].pool is filled["other"]
        happened.append("work")
    assert happened == [
        "pool opens",
        "repository opens",
        "work",
        "repository closes",
        "pool closes",
    ]


async def test_ready_instance_needs_no_provider() -> None:
    there = Pool()
    resources = Resources([repository], {Pool: there})
    async with resources.opened():
        assert resources.values({"one": Repository})["one"].pool is there


async def test_new_types_distinguish_two_resources_of_one_class() -> None:
    resources = Resources([pool, replica])
    async with resources.opened():
        filled = resources.values(store.takes.injected)
        assert set(filled) == {"pool", "replica"} and filled["pool"] is not filled["replica"]


def test_injected_parameter_is_not_part_of_the_data() -> None:
    assert store.data(path="a").data == {"path": "a"}
    with pytest.raises(TypeError, match="there is no parameter pool"):
        store.data(path="a", pool=Pool())


async def test_parameter_may_be_injected_by_annotation() -> None:
    @job
    async def annotated(
        job: Job, pool: Annotated[Pool, Inject], path: str, count: Annotated[int, "pages"] = 1
    ) -> None:
        happened.append(f"{type(pool).__name__} {path} {count}")

    @resource
    async def other(pool: Annotated[Pool, Inject]) -> AsyncIterator[Repository]:
        yield Repository(pool)

    assert (annotated.takes.injected, other.needs) == ({"pool": Pool}, {"pool": Pool})
    new = annotated.data(path="a")  # type: ignore[call-arg]  # the default form is known to mypy
    assert new.data == {"path": "a"}
    assert (await perform(new, resources={Pool: Pool()})).error is None
    assert happened[-1] == "Pool a 1"


def test_two_providers_of_one_type_are_refused() -> None:
    @resource
    async def other() -> AsyncIterator[Pool]:
        yield Pool()

    with pytest.raises(AioqlessError, match="two resources have the type Pool"):
        Resources([pool, other])
    with pytest.raises(AioqlessError, match="two resources have the type Pool"):
        Resources([pool], {Pool: Pool()})


def test_missing_resource_is_refused_by_name() -> None:
    with pytest.raises(
        AioqlessError,
        match="repository takes a Pool as pool, and no @resource of this worker opens one",
    ):
        Resources([repository])


class Egg: ...


class Hen: ...


@resource
async def egg(hen: Hen = Inject) -> AsyncIterator[Egg]:
    yield Egg()


@resource
async def hen(egg: Egg = Inject) -> AsyncIterator[Hen]:
    yield Hen()


def test_circular_resources_are_refused() -> None:
    with pytest.raises(
        AioqlessError, match=r"these resources depend on each other in a cycle: .*Hen"
    ):
        Resources([egg, hen])


async def test_provider_may_be_a_function_or_a_coroutine() -> None:
    @resource
    def bank() -> str:
        return "bank"

    @resource
    async def length(bank: str = Inject) -> int:
        return len(bank)

    resources = Resources([length, bank])
    async with resources.opened():
        assert resources.values({"name": str, "size": int}) == {"name": "bank", "size": 4}


def test_provider_that_is_a_generator_or_has_no_type_is_refused() -> None:
    def generator() -> Iterator[Pool]:
        yield Pool()

    async def silent():  # type: ignore[no-untyped-def]
        yield Pool()

    def nothing() -> None: ...

    with pytest.raises(TypeError, match="generator must be an async generator"):
        resource(generator)
    for untyped in (silent, nothing):
        with pytest.raises(TypeError, match=f"{untyped.__name__} must say what it opens"):
            resource(untyped)


def test_injected_parameter_without_a_type_is_refused() -> None:
    with pytest.raises(TypeError, match="untyped must annotate pool"):

        @job
        async def untyped(job: Job[Any], pool=Inject) -> None:  # type: ignore[no-untyped-def]
            ...
