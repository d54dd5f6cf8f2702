"""The options that commands of the lake share, and what each means."""

from __future__ import annotations

from typing import Annotated

import typer

Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark. Repeatable."),
]
LakePlace = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="AIOQLESS_LAKE",
        help="The lake: a folder, or a URL such as s3://bucket/prefix.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(help="Where Spark runs, such as spark://host:7077 or sc://host; default: here."),
]
OfNamespace = Annotated[
    str | None, typer.Option("--of", help="Only this namespace, with its partitions; default: all.")
]
Since = Annotated[
    str,
    typer.Option(
        help="The first day: 2026-11-21, today, yesterday, or 7d for the last seven days. "
        "Days are UTC's."
    ),
]
Trace = Annotated[
    bool, typer.Option("--trace", help="Show the whole traceback of an error, including Java's.")
]
Until = Annotated[str, typer.Option(help="The last day: 2026-11-21, today or yesterday.")]
