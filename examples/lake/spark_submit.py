"""The command line as a file, which is what spark-submit runs: see docs/lake.md.

spark-submit --master spark://cluster:7077 spark_submit.py lake archive --lake s3://bucket/lake
"""

from aioqless.__main__ import main

main()
