"""Makes a token: token."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from aioqless.cli.app import Section, app


@app.command(
    rich_help_panel=Section.RUN, epilog="Example: aioqless token ada --role admin >> tokens.toml"
)
def token(
    name: str,
    role: Annotated[
        str, typer.Option(help="Role in the dashboard: none, read, operate or admin.")
    ] = "none",
    may_put: Annotated[
        list[str] | None,
        typer.Option(metavar="KLASS", help="Klasses that it may put by the HTTP API: app.jobs.*"),
    ] = None,
    may_reserve: Annotated[
        list[str] | None,
        typer.Option(metavar="QUEUE", help="Task queues in which it may reserve jobs."),
    ] = None,
) -> None:
    """Make a token for the dashboard or the HTTP API; print its table for the file of tokens.

    The token itself is printed to standard error, and stored nowhere.
    """
    from aioqless.contrib.http.identity import parse_role
    from aioqless.contrib.http.tokens import Token, make_secret

    secret = make_secret()
    made = Token(
        name, secret, parse_role(role), may_put=may_put or (), may_reserve=may_reserve or ()
    )
    print(f'[{made.name}]\nsecret = "{made.hashes[0]}"\nrole = "{made.role.name.lower()}"')
    for option, patterns in (("may_put", made.may_put), ("may_reserve", made.may_reserve)):
        if patterns:
            print(f"{option} = {json.dumps(patterns)}")
    print(f"The token of {made.name}, which is not shown again: {secret}", file=sys.stderr)
