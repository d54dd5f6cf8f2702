"""Tests of another project, which pytest runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Plugins that this project's own tests need, and others don't have: some import for seconds.
NOT_INSTALLED = (
    *("schemathesis", "hypothesispytest", "faker", "xdist", "xdist.looponfail"),
    *("playwright", "base_url", "django", "platformdirs", "valkey", "cacheprovider"),
)
WITHOUT_PLUGINS = tuple(part for name in NOT_INSTALLED for part in ("-p", f"no:{name}"))


def run_pytest(folder: Path, *options: str) -> str:
    """Run the tests of a folder; returns what pytest prints.

    Raises:
        AssertionError: A test failed.
    """
    command = [sys.executable, "-m", "pytest", "-q", *WITHOUT_PLUGINS, *options, str(folder)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
