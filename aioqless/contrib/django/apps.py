"""The Django application."""

from django.apps import AppConfig


class AioqlessConfig(AppConfig):
    """Its models are those of the outbox and of the admin page."""

    name = "aioqless.contrib.django"
    label = "aioqless"
    verbose_name = "aioqless"
    default_auto_field = "django.db.models.BigAutoField"
