"""The settings of a project: its database and Redis come from the environment."""

import json
import os

import django

SECRET_KEY = "only for tests"
DEBUG = False
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "tests.contrib.django.shop.urls"
USE_TZ = True
LOGGING_CONFIG = None
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *(["django_tasks"] if django.VERSION < (6,) else []),
    "aioqless.contrib.django",
    "tests.contrib.django.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = json.loads(os.environ["SHOP_DATABASES"])
TASKS = {
    "default": {
        "BACKEND": "aioqless.contrib.django.Backend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": json.loads(os.environ.get("SHOP_TASKS", "{}")),
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "static/"
