"""What Spark is started with on this machine: which Java, which Python, how little they say, and
where it finds itself."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aioqless.contrib.lake.java import find_java

OF_PYTHON = "python"  # the folder of a Spark's home that has pyspark in a zip file


@contextmanager
def prepared(*, here: bool) -> Iterator[None]:
    """While Spark is started: the environment that it is to have. `here`: all its processes are on
    this machine.

    Raises AioqlessError, which says what to install, without a Java.
    """
    os.environ["JAVA_HOME"] = str(find_java().home)
    if os.environ.get(
        "SPARK_HOME"
    ):  # an installation of the user's own, with a configuration of its own
        yield
        return
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))
    if here and (home := _unzipped()):
        os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        os.environ.pop("SPARK_HOME", None)


def _unzipped() -> Path | None:
    """A home with all that Spark's own has, but for the zip file of pyspark, which each of its
    Python processes would prefer to the installed one, and compile anew: a second of processor
    time. None where pyspark isn't installed for this Python."""
    import pyspark

    own = Path(pyspark.__file__).parent
    if (
        str(own.parent) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
        or sys.platform == "win32"
    ):
        return None
    home = Path(tempfile.mkdtemp(prefix="aioqless-spark-"))
    for each in own.iterdir():
        if each.name != OF_PYTHON:
            (home / each.name).symlink_to(each)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home
