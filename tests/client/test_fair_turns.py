"""Fair turns, as options of put and of handlers, and the tenants of a queue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioqless import Client, Fair, InvalidData, Job, Key, NewJob, job
from aioqless.client.new_job import encode_job
from aioqless.client.queue_statistics import Tenant


@job(queue="imports", fair=Fair(("customer",)))
async def load(job: Job[Any], customer: int, file: str = "") -> None: ...


async def test_tenants_of_a_handler_start_in_turns(client: Client) -> None:
    imports = client.queue("imports")
    first = [await client.put(load.data(customer=7, file=str(n))) for n in range(3)]
    other = await client.put(load.data(customer=8), fair=Fair(("customer",), weight=3))
    assert [job.jid for job in await imports.pop(2)] == [first[0], other]
    tenants = {tenant.key: tenant for tenant in await imports.tenants()}
    seven = tenants["customer=7"]
    assert isinstance(seven, Tenant)
    assert (seven.waiting, seven.running) == (2, 1)
    assert (tenants["customer=8"].waiting, tenants["customer=8"].running) == (0, 1)


@pytest.mark.parametrize(
    ("by", "data", "tenant"),
    [
        (("customer",), {"customer": 7}, "customer=7"),
        (("customer",), {"customer": "acme"}, "customer=acme"),
        (("customer",), {"customer": "a,b=c"}, 'customer="a,b=c"'),
        (("a", "b"), {"a": 1, "b": None}, "a=1,b=null"),
        (Key("import"), {}, "import"),
        ((), {}, "Greet"),
    ],
)
def test_tenant_is_named_by_the_data(
    by: Key | tuple[str, ...], data: dict[str, object], tenant: str
) -> None:
    row = encode_job(NewJob("Greet", data, fair=Fair(by)), 10**6)
    assert json.loads(row["constraints"] or b"")["fair"] == tenant


async def test_data_without_the_field_is_refused(client: Client) -> None:
    with pytest.raises(InvalidData, match="fair of Greet"):
        await client.put("Greet", {}, fair=Fair(("customer",)))
