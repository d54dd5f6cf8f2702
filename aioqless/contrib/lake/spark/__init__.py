"""The pipeline in Spark: from the archive's stream to the files of each table.

session.py         a session: on what Java it runs, and how it is set up
class_archive.py   an archive of Java's classes, with which Spark starts in a third of the time
archive_source.py  load("archive"): the stream in Redis as a table
delta_source.py    files of a table as rows
transform.py       the frames of each table, made of `sql/`
cells.py           makes the row of a group of the sums of its bins
delta_write.py     tasks write files, of which the driver commits the names
"""

from aioqless.errors import require_extra

with require_extra("lake"):
    import pyspark  # noqa: F401
