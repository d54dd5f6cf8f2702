"""Where Spark's Python workers on this machine come from: a process that has imported what they need, and forks them.

Spark's own imports nothing before it forks, so each load, each plan and each task would import pyspark, pyarrow and the client anew, which
takes more than a second of processor time. Nothing here starts threads that would be missed behind a fork.
"""

from __future__ import annotations

import os

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start them as it is imported

    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    import aioqless.pipeline.source  # noqa: F401

    manager()
