"""Finding a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aioqless.errors import AioqlessError

OLDEST = 17
NEEDED = "jdk.incubator.vector"  # Spark starts Java with it, and a Java without it doesn't start
PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "C:/Program Files/Java/*",
    "C:/Program Files/Eclipse Adoptium/*",
)
TO_INSTALL = {
    "linux": "on Debian and Ubuntu `apt install openjdk-17-jre-headless` (or 21), on Fedora `dnf install java-21-openjdk-headless`",
    "darwin": "`brew install openjdk@17`",
    "win32": "`winget install EclipseAdoptium.Temurin.17.JRE`",
}


@dataclass(frozen=True)
class Java:
    """An installed Java: its home, its version (17 for 17.0.12), and what Spark would stumble
    over."""

    home: Path
    version: int
    modules: frozenset[str] = frozenset()

    @property
    def unfit(self) -> str | None:
        """Why Spark can't run on it."""
        if self.version < OLDEST:
            return f"it is version {self.version}, and Spark needs {OLDEST} or later"
        if self.modules and NEEDED not in self.modules:
            return f"it was built without the module {NEEDED}, which Spark starts Java with"
        return None


def find_java(environment: dict[str, str] | None = None) -> Java:
    """The Java of JAVA_HOME, else of PATH, else the oldest fit one of the usual places: the nearest
    to what Spark is tested with.

    Raises AioqlessError, which says what was found and what to install.
    """
    environment = dict(os.environ) if environment is None else environment
    unfit: dict[Path, str] = {}
    nearest = sorted(
        filter(None, map(_looked_at, _in_usual_places())), key=lambda java: java.version
    )
    for java in (*filter(None, map(_looked_at, _named(environment))), *nearest):
        if not java.unfit:
            return java
        unfit[java.home] = java.unfit
    told = (
        f" Found, but of no use: {'; '.join(f'{home}: {why}' for home, why in unfit.items())}."
        if unfit
        else ""
    )
    where = TO_INSTALL.get(sys.platform, "from https://adoptium.net")
    raise AioqlessError(
        f"Spark needs Java {OLDEST} or later, and there is none by JAVA_HOME, in PATH or in the usual places.{told} "
        f"Install one, {where}, or set JAVA_HOME to the directory of one that is there"
    )


def _named(environment: dict[str, str]) -> list[Path]:
    """What the environment names, the first first."""
    homes = []
    if named := environment.get("JAVA_HOME"):
        homes.append(Path(named).expanduser())
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        homes.append(Path(on_path).resolve().parent.parent)
    return homes


def _in_usual_places() -> list[Path]:
    return sorted(set(_globbed()))


def _globbed() -> Iterator[Path]:
    for place in PLACES:
        pattern = Path(place).expanduser()
        fixed = next(parent for parent in pattern.parents if "*" not in str(parent))
        yield from (found.resolve() for found in fixed.glob(str(pattern.relative_to(fixed))))


def _looked_at(home: Path) -> Java | None:
    """What a directory is, by its `release` file, or by asking its java."""
    program = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    if not program.is_file():
        return None
    told = dict(re.findall(r'^(\w+)="(.*?)"', _read(home / "release"), re.MULTILINE))
    version = told.get("JAVA_VERSION") or _asked(program)
    if (number := _number(version)) is None:
        return None
    return Java(home, number, frozenset(told.get("MODULES", "").split()))


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _asked(program: Path) -> str:
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return found[1] if found else ""


def _number(version: str) -> int | None:
    """17 of 17.0.12, 8 of 1.8.0_402."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else None
