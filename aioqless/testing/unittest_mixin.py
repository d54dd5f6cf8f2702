"""A mixin for classes of unittest."""

from __future__ import annotations

import unittest
from typing import ClassVar

from aioqless.testing.isolation import isolate
from aioqless.testing.server import server


class RedisTestMixin(unittest.TestCase):
    """Isolates each test, as the fixture `aioqless_redis` does: `class Tests(RedisTestMixin)`.

    A class starts a Redis for its tests, which every client uses, and which is empty when a test
    begins. Name it before other base classes, and call `super()` in `setUp` and `setUpClass`.

    Attributes:
        aioqless_url: URL of that Redis.
    """

    aioqless_url: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        """Start the Redis of the class."""
        cls.aioqless_url = cls.enterClassContext(server())
        super().setUpClass()

    def setUp(self) -> None:
        """Isolate the test."""
        self.enterContext(isolate(self.aioqless_url))
        super().setUp()
