"""The API: a shop, written in another language, puts receipts and reads their results."""

from __future__ import annotations

from starlette.applications import Starlette

import aioqless
from aioqless.contrib.http import Token, Tokens, create_api
from aioqless.contrib.http_api import job_router

from . import jobs


def make_app(client: aioqless.Client, secret: str) -> Starlette:
    """Return the API, with one token."""
    shop = Token("shop", secret, may_put=["shop.*"])
    return create_api(job_router(client, jobs), identify=Tokens([shop]), title="Shop")
