"""The environment in which Spark is started on this machine: its Java, home and configuration."""

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

PYTHON_FOLDER = "python"  # of a Spark home: has pyspark in a zip file


@contextmanager
def prepared(*, here: bool) -> Iterator[None]:
    """Set the environment variables that Spark is started with.

    Args:
        here: All of Spark's processes are on this machine.

    Raises:
        AioqlessError: There is no Java; the text says what to install.
    """
    os.environ["JAVA_HOME"] = str(find_java().home)
    if os.environ.get("SPARK_HOME"):  # the user's installation has its own configuration
        yield
        return
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))
    if here and (home := _make_home()):
        os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        os.environ.pop("SPARK_HOME", None)


def _make_home() -> Path | None:
    """Make a Spark home of links to the installed one, without the zip file of pyspark.

    Python processes of Spark would prefer the zip file to the installed pyspark, and compile it
    each time, which takes a second. Returns None if pyspark isn't installed for this Python.
    """
    import pyspark

    own = Path(pyspark.__file__).parent
    if (
        str(own.parent) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
        or sys.platform == "win32"
    ):
        return None
    home = Path(tempfile.mkdtemp(prefix="aioqless-spark-"))
    for each in own.iterdir():
        if each.name != PYTHON_FOLDER:
            (home / each.name).symlink_to(each)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home
