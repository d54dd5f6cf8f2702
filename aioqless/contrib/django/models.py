"""The outbox' table, and the queues of the admin."""

from __future__ import annotations

from django.db import models

from aioqless import validation


class OutboxJob(models.Model):
    """A job that is put when its transaction has committed.

    The table is that of `aioqless.contrib.outbox`: the relay of either may put its jobs.
    """

    queue: models.CharField[str, str] = models.CharField(max_length=validation.LONGEST)
    job: models.TextField[str, str] = models.TextField(help_text="The arguments of put, as JSON.")
    written: models.FloatField[float, float] = models.FloatField(
        help_text="Seconds since 1970, by the clock of the writing process."
    )
    refused: models.TextField[str | None, str | None] = models.TextField(
        null=True, blank=True, editable=False, help_text="Why Redis refused it."
    )

    class Meta:  # noqa: D106  # Django reads it
        db_table = "aioqless_outbox"
        verbose_name = "job of the outbox"
        verbose_name_plural = "outbox"

    def __str__(self) -> str:
        return f"{self.queue}: {self.job}"


class Queue(models.Model):
    """A queue in Redis, for the admin's list; it has no table."""

    class Meta:  # noqa: D106  # Django reads it
        managed = False
        default_permissions = ("view",)
