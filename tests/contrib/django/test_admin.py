"""The admin pages: queues with a link to the dashboard, and the outbox."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from aioqless.contrib.django import outbox
from aioqless.contrib.django.models import OutboxJob
from tests.contrib.django.conftest import MakeBackend, RunTasks
from tests.contrib.django.shop import tasks


@pytest.fixture
def admin(sqlite: str) -> Client:
    """A browser of a superuser."""
    User.objects.all().delete()
    OutboxJob.objects.all().delete()
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client


def test_queues_are_listed_with_their_counts_and_a_link_to_the_dashboard(
    make_backend: MakeBackend, run_tasks: RunTasks, admin: Client
) -> None:
    make_backend(dashboard_url="https://jobs.example/")
    page = admin.get("/admin/aioqless/queue/").content.decode()
    assert "There is no queue yet." in page and 'href="https://jobs.example/"' in page
    tasks.refuse.enqueue("no")
    run_tasks()
    tasks.add.enqueue(1)
    tasks.greet.enqueue("Ann")
    page = admin.get("/admin/aioqless/queue/").content.decode()
    for row in (
        '<th scope="row">default</th><td>1</td><td>0</td>',
        '<th scope="row">mail</th><td>1</td><td>0</td>',
        '<th scope="row">default-Refused</th><td>1</td>',
    ):
        assert row in page


def test_outage_of_redis_is_said_on_the_page(make_backend: MakeBackend, admin: Client) -> None:
    make_backend(url="redis://127.0.0.1:1", timeout=1)
    page = admin.get("/admin/aioqless/queue/").content.decode()
    assert "Redis can&#x27;t be reached" in page or "Redis can't be reached" in page


def test_refused_jobs_of_the_outbox_are_tried_again(
    make_backend: MakeBackend, admin: Client
) -> None:
    make_backend()
    jid = outbox.put("shop.Native", {"number": 1}, queue="mail")
    (row,) = OutboxJob.objects.all()
    OutboxJob.objects.update(refused="because")
    page = admin.get("/admin/aioqless/outboxjob/").content.decode()
    assert "because" in page and "shop.Native" in page and jid in page
    assert admin.get(f"/admin/aioqless/outboxjob/{row.pk}/change/").status_code == 200
    form = {"action": "try_again", "_selected_action": [row.pk]}
    admin.post("/admin/aioqless/outboxjob/", form)
    row.refresh_from_db()
    assert row.refused is None


def test_pages_are_for_users_with_the_permission_to_view(
    make_backend: MakeBackend, admin: Client
) -> None:
    make_backend()
    client = Client()
    assert client.get("/admin/aioqless/queue/").status_code == 302
    client.force_login(User.objects.create_user("bob", is_staff=True))
    assert client.get("/admin/aioqless/queue/").status_code == 403
    assert admin.get("/admin/aioqless/outboxjob/add/").status_code == 403
