"""Finding a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from aioqless.errors import AioqlessError

OLDEST_VERSION = 17
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "C:/Program Files/Java/*",
    "C:/Program Files/Eclipse Adoptium/*",
)
HOW_TO_INSTALL = {
    "linux": "on Debian and Ubuntu `apt install openjdk-17-jre-headless` (or 21), on Fedora "
    "`dnf install java-21-openjdk-headless`",
    "darwin": "`brew install openjdk@17`",
    "win32": "`winget install EclipseAdoptium.Temurin.17.JRE`",
}


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of a Java for Spark: of JAVA_HOME, of PATH, or of the usual places.

    Of several in the usual places, the oldest one is nearest to the version that Spark is tested
    with.

    Raises:
        AioqlessError: No suitable Java was found; the message says what to install.
    """
    unfit = []
    for version, home in _list_javas(environment):
        if version >= OLDEST_VERSION:
            return home
        unfit.append(f"{home} is version {version}")
    where = HOW_TO_INSTALL.get(sys.platform, "from https://adoptium.net")
    raise AioqlessError(
        f"Spark needs Java {OLDEST_VERSION} or later, and there is none by JAVA_HOME, in PATH or "
        f"in the usual places{''.join(f'; {each}' for each in unfit)}. Install one, {where}, or "
        "set JAVA_HOME to the folder of an installed one"
    )


def _list_javas(environment: Mapping[str, str]) -> Iterator[tuple[int, Path]]:
    """Yield the version and the folder of each Java, those that the environment names first."""
    named = [Path(home).expanduser() for home in [environment.get("JAVA_HOME")] if home]
    if program := shutil.which("java", path=environment.get("PATH", "")):
        named.append(Path(program).resolve().parent.parent)
    yield from _find_versions(named)
    yield from sorted(_find_versions({home.resolve() for home in _list_usual()}))


def _list_usual() -> Iterator[Path]:
    for place in USUAL_PLACES:
        fixed, _, pattern = os.path.expanduser(place).partition("*")  # noqa: PTH111
        folder, prefix = fixed.rsplit("/", 1)
        yield from Path(folder).glob(f"{prefix}*{pattern}")


def _find_versions(homes: Iterable[Path]) -> Iterator[tuple[int, Path]]:
    for home in homes:
        program = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
        try:
            answer = subprocess.run(
                [program, "-version"], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found := re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout):
            yield int(found[1]), home
