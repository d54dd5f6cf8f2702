"""The models of the project."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    number: models.IntegerField[int, int] = models.IntegerField(unique=True)
    paid: models.BooleanField[bool, bool] = models.BooleanField(default=False)
