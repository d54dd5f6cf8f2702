"""A story for each test."""

import pytest

from aioqless.scripts import Scripts

from .story import Story


@pytest.fixture
def story(scripts: Scripts) -> Story:
    return Story(scripts)
