"""What each extra brings: packages, megabytes, imported modules and import time.

`python -m tests.unit.weights` measures all of them in the environment that it runs in, and prints
the rows of the table in docs/get-started/install.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distribution, metadata
from pathlib import Path

from tests.source import PACKAGE
from tests.unit.core_only import absent, distributions

PAGE = PACKAGE.parent / "docs" / "get-started" / "install.md"
ROUNDS = 5
# Hides what others bring: some libraries import Rich, for instance, where it is installed.
PROGRAM = """
import json, sys, time
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
begin = time.process_time()
{code}
print(json.dumps([len(sys.modules), time.process_time() - begin]))
"""
# What a program imports that uses an extra.
IMPORTED = {
    "": "from aioqless import Client, Worker",
    "cli": "from aioqless.cli.main import load_command; load_command('queues')",
    "django": "import aioqless.contrib.django, django.db, django_tasks",
    "encryption": "import aioqless.contrib.encryption, cryptography.fernet",
    "flask": "import aioqless.contrib.flask",
    "opentelemetry": "import aioqless.contrib.telemetry.opentelemetry",
    "private-redis": "import aioqless.contrib.private_redis",
    "prometheus": "import aioqless.contrib.telemetry.prometheus",
    "reload": "import watchfiles",
    "sentry": "import aioqless.contrib.telemetry.sentry",
    "lake": "import aioqless.contrib.lake",
    "lake-read": "import aioqless.contrib.lake.read.database",
    "sqlalchemy": "import aioqless.contrib.outbox",
    "top": "import aioqless.contrib.top",
    "web": "import aioqless.contrib.dashboard.web_server",
}


@dataclass(frozen=True)
class Weight:
    """What `pip install` of an extra brings, and what its import costs.

    Attributes:
        packages: their number, with aioqless itself.
        megabytes: size of their files without bytecode, in 10^6 bytes.
        modules: number of modules that are imported, Python's own included.
        seconds: processor time of the import.
    """

    packages: int
    megabytes: float
    modules: int
    seconds: float


def extras() -> list[str]:
    """Return the core, as an empty name, and all extras."""
    return ["", *sorted(metadata("aioqless").get_all("Provides-Extra") or ())]


def weigh(extra: str, rounds: int = 1) -> Weight:
    """Measure an extra together with the core."""
    brought = distributions("aioqless", *([extra] if extra else []))
    size = sum(_size(name) for name in brought)
    code = f"{IMPORTED['']}; {IMPORTED[extra]}"
    program = PROGRAM.format(hidden=absent(extra), code=code)
    imports = [_import(program) for _ in range(rounds)]
    modules, seconds = imports[0][0], min(each for _, each in imports)
    return Weight(len(brought), round(size / 1e6, 1), modules, round(seconds, 2))


def recorded() -> dict[str, Weight]:
    """Return the weights that the page on installing says."""
    rows = re.findall(
        r"^\| `aioqless(?:\[([\w-]+)\])?` \|.*\| ([\d,]+) \| ([\d,.]+) \| ([\d,]+) \| ([\d.]+) \|$",
        PAGE.read_text("utf-8"),
        re.MULTILINE,
    )
    return {
        extra: Weight(int(packages), float(size.replace(",", "")), _number(modules), float(seconds))
        for extra, packages, size, modules, seconds in rows
    }


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _size(name: str) -> int:
    if name == "aioqless":  # which tests install editable
        return sum(
            file.stat().st_size
            for file in PACKAGE.rglob("*")
            if file.is_file() and "__pycache__" not in file.parts
        )
    files = [
        Path(str(file.locate())) for file in distribution(name).files or () if file.suffix != ".pyc"
    ]
    return sum(file.stat().st_size for file in files if file.is_file())


def _import(program: str) -> tuple[int, float]:
    """Return the number of modules after the imports of a program, and their processor time."""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules, seconds = json.loads(ended.stdout)
    return modules, seconds


def main() -> None:
    for extra in sys.argv[1:] or extras():
        found = weigh(extra, ROUNDS)
        name = f"`aioqless[{extra}]`" if extra else "`aioqless`"
        print(
            f"| {name} | … | {found.packages} | {found.megabytes:,} | {found.modules:,} "
            f"| {found.seconds} |"
        )


if __name__ == "__main__":
    main()
