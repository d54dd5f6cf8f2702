"""The lake as a DAG of Airflow: archive, merge, check each hour.

Copy it to the folder of DAGs; AIOQLESS_URL and AIOQLESS_LAKE are in the workers' environment.
`python airflow_dag.py` runs it once, without a scheduler.
"""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

# AIOQLESS_PYTHON is the interpreter of an environment with aioqless[lake,lake-read], unless
# Airflow's has it.
COMMAND = "${AIOQLESS_PYTHON:-python} -m aioqless lake"

with DAG(
    "aioqless_lake",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=1)},
) as dag:
    archive = BashOperator(task_id="archive", bash_command=f"{COMMAND} archive")
    tables = BashOperator(task_id="tables", bash_command=f"{COMMAND} tables")
    check = BashOperator(task_id="check", bash_command=f"{COMMAND} check")
    archive >> tables >> check

if __name__ == "__main__":
    dag.test()
