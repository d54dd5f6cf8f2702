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
) -> None:
    """Make a token for the dashboard or the HTTP API; print its table for the file of tokens.

    The token itself is printed to standard error, and stored nowhere.
    """
    from aioqless.contrib.http.identity import parse_role
    from aioqless.contrib.http.tokens import Token, make_secret

    secret = make_secret()
    made = Token(name, secret, parse_role(role), may_put or ())
    print(f'[{made.name}]\nsecret = "{made.hashes[0]}"\nrole = "{made.role.name.lower()}"')
    if made.may_put:
        print(f"may_put = {json.dumps(made.may_put)}")
    print(f"The token of {made.name}, which is not shown again: {secret}", file=sys.stderr)
