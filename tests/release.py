"""Builds and tests the files of a release from the last commit: `nox -s release`.

Two clean clones must give the same bytes. The wheel is built from the sdist, and tested with each
of the interpreters in the arguments: the tests come from the sdist, the package from the wheel.
`dist/` then has both, a software bill of materials (SBOM) of what `pip install` brings, and
checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = "encryption,prometheus,opentelemetry,private-redis,reload,sentry,sqlalchemy,top,web"
TESTS = (
    "tests/examples/test_get_started.py",  # also the README's first example
    "tests/client/test_client.py",
    "tests/worker/test_order.py",
    "tests/contrib/dashboard/test_pages.py",
    "tests/contrib/human_tasks/test_api.py",
    "tests/unit/test_handlers.py",
    "tests/unit/test_outcome.py",
)
IS_INSTALLED = """
import aioqless, sysconfig
assert aioqless.__file__.startswith(sysconfig.get_path("purelib")), aioqless.__file__
"""


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    print("$", *command, flush=True)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(list(map(str, command)), cwd=cwd, env=inherited | environment, check=True)


def git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True).strip()


def build(folder: Path) -> tuple[Path, Path]:
    """Clone the last commit and return the sdist and the wheel that are built from it."""
    run("git", "clone", "-q", ROOT, folder)
    run(
        *(sys.executable, "-m", "build", "--outdir", folder / "dist", folder),
        SOURCE_DATE_EPOCH=git("log", "-1", "--format=%ct"),
    )
    (sdist,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return sdist, wheel


def check_contents(wheel: Path) -> None:
    """Raise AssertionError unless the wheel has exactly the files of the package."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = set(git("ls-files", "aioqless").splitlines())
    assert packed == tracked, f"differ: {sorted(packed ^ tracked)}"


def install(python: str | Path, folder: Path, *packages: str) -> Path:
    """Return the interpreter of a new environment that has the packages, but not pip."""
    run(python, "-m", "venv", "--without-pip", folder)
    installed = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "-q", "--python", installed, "install", *packages)
    return installed


def main(*interpreters: str) -> None:
    if changed := git("status", "--porcelain"):
        sys.exit(f"commit or remove what is not part of the release:\n{changed}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = build(folder / "first")
        for file, again in zip(files, build(folder / "second"), strict=True):
            assert file.read_bytes() == again.read_bytes(), f"two builds of {file.name} differ"
        sdist, wheel = files
        check_contents(wheel)
        run(sys.executable, "-m", "twine", "check", "--strict", *files)

        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        source = folder / sdist.name.removesuffix(".tar.gz")
        shutil.rmtree(source / "aioqless")
        group = ("--group", f"{source / 'pyproject.toml'}:smoke-tests")
        for number, interpreter in enumerate(interpreters):
            python = install(interpreter, folder / f"{number}", f"{wheel}[{EXTRAS}]", *group)
            run(python, "-c", IS_INSTALLED, cwd=source)
            run(python, "-m", "pytest", "-q", "-n", "auto", *TESTS, cwd=source)

        bill = folder / f"{source.name}.cdx.json"
        run(
            *(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"),
            *("--pyproject", source / "pyproject.toml", "--mc-type", "library"),
            *("--output-file", bill, install(sys.executable, folder / "core", str(wheel))),
        )
        content = json.loads(bill.read_text())
        name, version = source.name.split("-")
        # The tool finds no version in pyproject.toml, which leaves it to the build.
        content["metadata"]["component"] |= {
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
        }
        bill.write_text(json.dumps(content, indent=2) + "\n")
        kept = ROOT / "dist"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for file in (*files, bill):
            shutil.copy(file, kept)
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(kept.iterdir())
    ]
    (kept / "SHA256SUMS").write_text("".join(sums))
    for file in sorted(kept.iterdir()):
        print(f"{file.stat().st_size:>10,}  {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
