"""Checks where requests come from."""

from __future__ import annotations

from starlette.requests import Request

from aioqless.contrib.http import is_from_this_machine, is_of_same_origin
from aioqless.contrib.http.json_api import RequestRefused, check_content_type

COOKIE = "aioqless-tasks"
SESSION_LIFETIME = 7 * 86_400  # seconds


def check_address(request: Request) -> None:
    """Refuse clients that are not on this machine."""
    if not is_from_this_machine(request):
        why = "Without authentication, only http://localhost on this machine is served."
        raise RequestRefused(
            403, "address", f"{why} Give create_api an `identify` to serve others."
        )


def check_origin(request: Request) -> None:
    """Refuse a change that a page of another origin sends.

    Clients that are not browsers send no origin, and have no cookie but their own.
    """
    if is_of_same_origin(request) is False:
        raise RequestRefused(403, "origin", "Changes must come from a page of the same origin.")
    check_content_type(request)
