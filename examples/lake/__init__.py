"""A lake of the site audit's jobs, and programs that read it without Spark.

__main__.py        runs the audit, and makes the lake and a report
duckdb_lake.py     SQL with DuckDB
polars_lake.py     data frames with Polars
questions.ipynb    a notebook that answers three questions
dbt/               a dbt project with a model and its tests
spark_submit.py    the command line for spark-submit
airflow_dag.py     a DAG of Airflow
dagster_assets.py  assets of Dagster
"""
