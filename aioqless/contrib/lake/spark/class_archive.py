"""An archive of the classes that Java loads, with which Spark starts in a third of the time.

The first process that starts a Spark of this version on this Java makes it, when its Java ends.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark import __file__ as spark_file
from pyspark import __version__ as spark_version

_NO_LOG: Final = "-Xlog:disable -Xlog:all=off"  # Java would say on stdout why it uses no archive
_PATIENCE: Final = 60.0  # seconds for which Java may write the archive
_KEPT: Final = 30 * 86400.0  # seconds for which an archive is kept that no process has used
_UNFINISHED_KEPT: Final = 3600.0  # seconds for which one is kept that is not in its place yet


def archive_options(java: Path, options: Sequence[str]) -> list[str]:
    """Return the options with which Java uses the archive, or makes it if there is none.

    Args:
        java: The program.
        options: Its other options, on which the archive depends.
    """
    modules = java.parents[1] / "lib" / "modules"
    if not modules.is_file():  # no Java that has archives
        return []
    jars = (os.environ.get("SPARK_HOME") or spark_file, Path(spark_file).stat().st_mtime_ns)
    about = (str(java), modules.stat().st_mtime_ns, spark_version, *jars, *options)
    key = hashlib.sha256(repr(about).encode()).hexdigest()[:16]
    archive = find_cache() / f"spark-{spark_version}-{key}.jsa"
    if archive.exists():
        with suppress(OSError):
            archive.touch()
        return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *_NO_LOG.split()]
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        new = archive.with_name(f"{archive.name}.{os.getpid()}")
        new.touch()
        new.unlink()
        _remove_unused(archive.parent)
    except OSError:  # a home that can't be written
        return []
    atexit.register(_finish, new, archive)
    return [f"-XX:ArchiveClassesAtExit={new}", *_NO_LOG.split()]


def find_empty_folder() -> Path:
    """Return an empty folder."""
    folder = find_cache() / "empty"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(__file__).with_name("sql")  # without a configuration
    return folder


def find_cache() -> Path:
    """Return the folder of the archives, which may not be there."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aioqless"


def _remove_unused(folder: Path) -> None:
    """Remove archives of former installations, and what killed processes left; each has 190 MB."""
    for each in folder.glob("spark-*.jsa*"):
        kept = _KEPT if each.suffix == ".jsa" else _UNFINISHED_KEPT
        with suppress(FileNotFoundError):  # another process removes it, too
            if time.time() - each.stat().st_mtime > kept:
                each.unlink()


def _finish(new: Path, archive: Path) -> None:
    """End Java, which writes the archive then, and put the file in its place."""
    gateway = SparkContext._gateway  # noqa: SLF001 (pyspark ends it without waiting)
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    if active := SparkContext._active_spark_context:  # noqa: SLF001
        active.stop()
    gateway.shutdown()
    process.stdin.close()
    process.wait(_PATIENCE)
    if new.exists():
        new.replace(archive)
