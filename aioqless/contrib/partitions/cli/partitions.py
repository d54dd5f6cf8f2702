"""Shows how the partitions of a namespace are distributed: partitions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import msgspec
import typer

from aioqless.cli.app import Section, app
from aioqless.cli.options import Json
from aioqless.cli.presentation.formatting import pluralize
from aioqless.cli.presentation.printing import print_json, print_table, print_text
from aioqless.client import Client
from aioqless.contrib.partitions import PartitionedClient
from aioqless.contrib.partitions.distribution import NodeLoad, PartitionLoad
from aioqless.errors import AioqlessError


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
    nodes = await client.measure_nodes(loads)
    if json:
        print_json(
            {"partitions": [asdict(load) for load in loads], "nodes": [*map(_to_json, nodes)]}
        )
    elif each:
        _print_partitions(loads)
    else:
        _print_nodes(nodes)


def _to_json(node: NodeLoad) -> dict[str, object]:
    return {**asdict(node), "server": node.server and msgspec.to_builtins(node.server)}


def _print_partitions(loads: list[PartitionLoad]) -> None:
    columns = ("partition", "namespace", "slot", "node", "waiting", "running", "others")
    rows = [
        [load.number, load.namespace, load.slot, load.node]
        + ([load.waiting, load.running, load.others] if load.reachable else ["?", "?", "?"])
        for load in loads
    ]
    print_table(columns, rows, empty="")


def _print_nodes(nodes: list[NodeLoad]) -> None:
    columns = ("node", "partitions", "waiting", "running", "others", "memory", "calls/s", "clients")
    rows = []
    for node in sorted(nodes, key=lambda node: node.node):
        server = node.server
        state = ["doesn't answer", "", ""]
        if server is not None:
            memory = f"{server.memory / 2**20:,.0f} MiB"
            state = [memory, f"{server.commands_per_second:,}", f"{server.clients:,}"]
        counts = [node.waiting, node.running, node.others]
        rows.append([node.node, len(node.partitions), *counts, *state])
    print_table(columns, rows, empty="")
    count = sum(len(node.partitions) for node in nodes)
    print_text(f"{pluralize(count, 'partition')} on {pluralize(len(nodes), 'node')}", style="dim")
