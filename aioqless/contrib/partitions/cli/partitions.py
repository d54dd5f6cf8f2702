"""Shows how the partitions of a namespace are distributed: partitions."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

import msgspec
import typer

from aioqless.cli.app import Section, app
from aioqless.cli.options import Json
from aioqless.cli.presentation.formatting import pluralize
from aioqless.cli.presentation.printing import print_json, print_table, print_text
from aioqless.client import Client
from aioqless.contrib.partitions import PartitionedClient
from aioqless.contrib.partitions.client import PartitionLoad
from aioqless.errors import AioqlessError

_COUNTS = ("waiting", "running", "others")


@app.command(
    rich_help_panel=Section.ADMIN,
    epilog="Examples: aioqless partitions --namespace billing --partitions 48; "
    "aioqless partitions --each --json",
)
async def partitions(
    client: Client,
    each: Annotated[bool, typer.Option("--each", help="A line for each partition.")] = False,
    json: Json = False,
) -> None:
    """Show how the partitions of a namespace are distributed over nodes, and the nodes' load."""
    if not isinstance(client, PartitionedClient):
        raise AioqlessError(
            "say how many partitions the namespace has: --partitions, or AIOQLESS_PARTITIONS"
        )
    loads = await client.measure_partitions()
    if each and not json:
        _print_partitions(loads)
        return
    names = sorted({load.node for load in loads})
    nodes = await asyncio.gather(
        *(_measure(client, [load for load in loads if load.node == name]) for name in names)
    )
    if json:
        print_json({"partitions": [asdict(load) for load in loads], "nodes": nodes})
    else:
        _print_nodes(nodes)
        count = pluralize(len(loads), "partition")
        print_text(f"{count} on {pluralize(len(nodes), 'node')}", style="dim")


async def _measure(client: PartitionedClient, loads: list[PartitionLoad]) -> dict[str, Any]:
    """Return the partitions of a node, their jobs, and the state of its server if it answers."""
    server = None
    if any(load.reachable for load in loads):
        server = await client.partitions[loads[0].number].server.info()
    return {
        "node": loads[0].node,
        "partitions": [load.number for load in loads],
        "server": msgspec.to_builtins(server),
        **{name: sum(getattr(load, name) for load in loads) for name in _COUNTS},
    }


def _print_partitions(loads: list[PartitionLoad]) -> None:
    rows = [
        [load.number, load.namespace, load.slot, load.node]
        + ([load.waiting, load.running, load.others] if load.reachable else ["?", "?", "?"])
        for load in loads
    ]
    print_table(("partition", "namespace", "slot", "node", *_COUNTS), rows, empty="")


def _print_nodes(nodes: list[dict[str, Any]]) -> None:
    rows = []
    for node in nodes:
        state = ["doesn't answer", "", ""]
        if server := node["server"]:
            memory = f"{server['memory'] / 2**20:,.0f} MiB"
            state = [memory, f"{server['commands_per_second']:,}", f"{server['clients']:,}"]
        rows.append([node["node"], len(node["partitions"]), *map(node.get, _COUNTS), *state])
    columns = ("node", "partitions", *_COUNTS, "memory", "calls/s", "clients")
    print_table(columns, rows, empty="")
