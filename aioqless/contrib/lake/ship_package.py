"""Sends this package to executors on other machines, where its dependencies are installed."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = Path(__file__).resolve().parents[2]
NOT_SHIPPED = {"__pycache__", "dashboard"}


def ship(spark: SparkSession) -> Path | None:
    """Send the package to a session's executors, unless they run where it is.

    Returns the archive that was sent.
    """
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect.")
    if not is_connect and (spark.sparkContext.master or "").partition("[")[0] == "local":
        return None
    archive = Path(tempfile.mkdtemp(prefix="aioqless-")) / "aioqless.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(PACKAGE.rglob("*")):
            within = path.relative_to(PACKAGE.parent)
            if path.is_file() and not NOT_SHIPPED & set(within.parts):
                file.write(path, within)
    if is_connect:
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))
    return archive
