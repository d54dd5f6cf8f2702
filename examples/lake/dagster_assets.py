"""The lake as assets of Dagster: events and tables, a check that they agree, and a schedule.

`dagster dev -f dagster_assets.py`, with AIOQLESS_URL and AIOQLESS_LAKE in the environment.
"""

import os
import subprocess
import sys

import dagster

# The interpreter of an environment with aioqless[lake,lake-read], unless Dagster's own has it.
PYTHON = os.environ.get("AIOQLESS_PYTHON", sys.executable)
RETRY = dagster.RetryPolicy(max_retries=3, delay=60)


def run(command: str, check: bool = True) -> str:
    done = subprocess.run(
        [PYTHON, "-m", "aioqless", "lake", command],
        stdout=subprocess.PIPE,
        text=True,
        check=check,
    )
    return done.stdout


@dagster.asset(retry_policy=RETRY)
def events() -> dagster.MaterializeResult:
    return dagster.MaterializeResult(metadata={"archived": run("archive")})


@dagster.asset(deps=[events], retry_policy=RETRY)
def tables() -> dagster.MaterializeResult:
    return dagster.MaterializeResult(metadata={"merged": run("tables")})


@dagster.asset_check(asset=tables)
def tables_agree_with_events() -> dagster.AssetCheckResult:
    found = run("check", check=False)
    passed = found.strip() == "the tables agree"
    return dagster.AssetCheckResult(passed=passed, metadata={"found": found})


lake = dagster.define_asset_job("lake", selection="*")
hourly = dagster.ScheduleDefinition(job=lake, cron_schedule="@hourly")
defs = dagster.Definitions(
    assets=[events, tables],
    asset_checks=[tables_agree_with_events],
    jobs=[lake],
    schedules=[hourly],
)
