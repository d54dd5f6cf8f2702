"""The admin pages: queues with a link to the dashboard, and the outbox."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from aioqless import Client
from aioqless.client import REDIS_UNAVAILABLE
from aioqless.client.queue_statistics import QueueOverview
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.models import OutboxJob, Queue
from aioqless.contrib.django.task_framework import task_backends

if TYPE_CHECKING:
    from django.db.models import QuerySet

    OutboxAdminBase = admin.ModelAdmin[OutboxJob]
    QueueAdminBase = admin.ModelAdmin[Queue]
else:
    OutboxAdminBase = QueueAdminBase = admin.ModelAdmin


@admin.register(OutboxJob)
class OutboxAdmin(OutboxAdminBase):
    """Lists the jobs waiting in the outbox; a refused one can be retried or deleted."""

    list_display = ("queue", "klass", "jid", "written_at", "refused")
    list_filter = ("queue", ("refused", admin.EmptyFieldListFilter))
    readonly_fields = ("queue", "job", "written_at", "refused")
    exclude = ("written",)
    ordering = ("id",)
    actions = ("try_again",)

    @admin.display(ordering="written")
    def written_at(self, row: OutboxJob) -> datetime:
        """Return when the row was written."""
        zone = timezone.get_current_timezone()
        return datetime.fromtimestamp(row.written, zone)

    def klass(self, row: OutboxJob) -> str:
        """Return the job's klass."""
        return str(json.loads(row.job)["klass"])

    def jid(self, row: OutboxJob) -> str:
        """Return the job's jid."""
        return str(json.loads(row.job)["jid"])

    @admin.action(description="Try refused jobs again", permissions=["change"])
    def try_again(self, request: HttpRequest, rows: QuerySet[OutboxJob]) -> None:
        """Let the relay put refused jobs again."""
        count = rows.exclude(refused=None).update(refused=None)
        self.message_user(request, f"{count} jobs will be tried again.", messages.SUCCESS)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Return False: rows are written by `outbox.put`."""
        return False


@admin.register(Queue)
class QueueAdmin(QueueAdminBase):
    """Lists the queues of each backend, with a link to the dashboard."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Render the page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = {alias: task_backends[alias] for alias in task_backends}
        backends = [
            _describe(alias, backend)
            for alias, backend in found.items()
            if isinstance(backend, Backend)
        ]
        context = {
            **self.admin_site.each_context(request),
            "title": "Queues",
            "opts": self.model._meta,  # noqa: SLF001  # Django documents it
            "backends": backends,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/aioqless/queue/change_list.html", context)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Return False: a queue exists from its first job on."""
        return False


def _describe(alias: str, backend: Backend) -> dict[str, object]:
    """Return the queues of a backend, or why they can't be read."""
    described: dict[str, object] = {
        "alias": alias,
        "dashboard_url": backend.settings.dashboard_url,
    }

    async def read(client: Client) -> tuple[list[QueueOverview], dict[str, int]]:
        return await client.queues(), await client.jobs.failed_counts()

    try:
        queues, failed = backend.settings.client().call(read)
    except (*REDIS_UNAVAILABLE, OSError) as error:
        return described | {"error": str(error)}
    return described | {"queues": queues, "failed": failed.items()}
