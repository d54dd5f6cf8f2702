"""The dashboard beside Django, as docs/dashboard.md shows it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client as Browser

from aioqless import Client
from tests.pages import ROOT, blocks

(CODE,) = [each for each in blocks(ROOT / "docs" / "dashboard.md", "python") if "django" in each]


async def test_users_of_django_use_the_dashboard(
    sqlite: str, client: Client, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", client.namespace)
    names: dict[str, Any] = {}
    exec(CODE, names)

    def sign_in(name: str, **options: bool) -> str:
        browser = Browser()
        user, _ = User.objects.update_or_create(username=name, defaults=options)
        browser.force_login(user)
        return f"sessionid={browser.cookies['sessionid'].value}"

    ada = await sync_to_async(sign_in)("ada", is_superuser=True, is_active=True)
    bob = await sync_to_async(sign_in)("bob", is_superuser=False, is_active=True)
    transport = httpx.ASGITransport(app=names["application"])
    async with (
        names["lifespan"](names["application"]),
        httpx.AsyncClient(transport=transport, base_url="http://testserver") as http,
    ):
        for cookie, status in ((ada, 200), (bob, 403), ("sessionid=forged", 403), ("", 403)):
            answer = await http.get("/jobs/audit-log", headers={"Cookie": cookie})
            assert answer.status_code == status, cookie
        assert (await http.get("/admin/login/")).status_code == 200
        await sync_to_async(sign_in)("ada", is_superuser=True, is_active=False)
        assert (await http.get("/jobs/", headers={"Cookie": ada})).status_code == 403
