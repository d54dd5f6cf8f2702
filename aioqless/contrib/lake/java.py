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

OLDEST_VERSION = 17
MODULE = "jdk.incubator.vector"  # Spark starts Java with it; a Java that lacks it doesn't start
USUAL_PLACES = (
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
HOW_TO_INSTALL = {
    "linux": "on Debian and Ubuntu `apt install openjdk-17-jre-headless` (or 21), on Fedora "
    "`dnf install java-21-openjdk-headless`",
    "darwin": "`brew install openjdk@17`",
    "win32": "`winget install EclipseAdoptium.Temurin.17.JRE`",
}


@dataclass(frozen=True)
class Java:
    """An installed Java.

    Attributes:
        home: Its folder.
        version: Its version, 17 for 17.0.12.
        modules: Its modules; empty if it doesn't say.
    """

    home: Path
    version: int
    modules: frozenset[str] = frozenset()

    @property
    def unfit(self) -> str | None:
        """Why Spark can't run on it, or None."""
        if self.version < OLDEST_VERSION:
            return f"it is version {self.version}, and Spark needs {OLDEST_VERSION} or later"
        if self.modules and MODULE not in self.modules:
            return f"it was built without the module {MODULE}, which Spark starts Java with"
        return None


def find_java(environment: dict[str, str] | None = None) -> Java:
    """Return the Java to start Spark with: of JAVA_HOME, of PATH, or of the usual places.

    Of those in the usual places, the oldest one that Spark can run on is nearest to the version
    that Spark is tested with.

    Args:
        environment: Environment variables; those of this process unless given.

    Raises:
        AioqlessError: No suitable Java was found; the message says what to install.
    """
    environment = dict(os.environ) if environment is None else environment
    preferred = filter(None, map(_inspect, _list_preferred(environment)))
    usual = filter(None, map(_inspect, sorted(set(_list_usual()))))
    unfit: dict[Path, str] = {}
    for java in (*preferred, *sorted(usual, key=lambda java: java.version)):
        if not java.unfit:
            return java
        unfit[java.home] = java.unfit
    found = "; ".join(f"{home}: {why}" for home, why in unfit.items())
    unusable = f" Found, but unusable: {found}." if found else ""
    where = HOW_TO_INSTALL.get(sys.platform, "from https://adoptium.net")
    raise AioqlessError(
        f"Spark needs Java {OLDEST_VERSION} or later, and there is none by JAVA_HOME, in PATH or "
        f"in the usual places.{unusable} Install one, {where}, or set JAVA_HOME to the folder of "
        "an installed one"
    )


def _list_preferred(environment: dict[str, str]) -> list[Path]:
    """Return the homes that the environment names, JAVA_HOME first."""
    homes = []
    if home := environment.get("JAVA_HOME"):
        homes.append(Path(home).expanduser())
    if program := shutil.which("java", path=environment.get("PATH", "")):
        homes.append(Path(program).resolve().parent.parent)
    return homes


def _list_usual() -> Iterator[Path]:
    for place in USUAL_PLACES:
        pattern = Path(place).expanduser()
        fixed = next(parent for parent in pattern.parents if "*" not in str(parent))
        yield from (home.resolve() for home in fixed.glob(str(pattern.relative_to(fixed))))


def _inspect(home: Path) -> Java | None:
    """Return the Java of a folder, by its file `release`, or else by running it."""
    program = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    if not program.is_file():
        return None
    release = dict(re.findall(r'^(\w+)="(.*?)"', _read(home / "release"), re.MULTILINE))
    version = release.get("JAVA_VERSION") or _run_for_version(program)
    if (number := _parse_version(version)) is None:
        return None
    return Java(home, number, frozenset(release.get("MODULES", "").split()))


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _run_for_version(program: Path) -> str:
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return found[1] if found else ""


def _parse_version(version: str) -> int | None:
    """Return 17 for 17.0.12, and 8 for 1.8.0_402."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else None
