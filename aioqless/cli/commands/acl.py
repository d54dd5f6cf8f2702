"""Users of Redis with the permissions of a role: acl."""

from __future__ import annotations

import os
import secrets
import sys
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.options import Namespace, Partitions


@app.command(
    rich_help_panel=Section.ADMIN,
    epilog="Example: aioqless acl producer --namespace billing >> users.acl",
)
def acl(
    role: Annotated[
        str, typer.Argument(help="producer, worker, people, dashboard, reader or archiver.")
    ],
    user: Annotated[str | None, typer.Option(help="The user's name; default: the role's.")] = None,
    namespace: Namespace = "ql",
    partitions: Partitions = None,
) -> None:
    """Print a user of Redis with the least privileges of a role, as a line for its ACL file.

    The password is AIOQLESS_PASSWORD, or a new one, which is printed on standard error.
    """
    from aioqless.cli import acl_roles

    given = os.environ.get("AIOQLESS_PASSWORD")
    password = given or secrets.token_urlsafe(24)
    whole = namespace if (partitions or 1) == 1 else f"{namespace}{{*}}"
    print(acl_roles.user(role, whole, password, user))
    if not given:
        print(f"the password of {user or role}: {password}", file=sys.stderr)
