"""The driver for Celery with Redis as broker.

One child process in the default (prefork) pool. Celery has no bulk put.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery as App

from tests.bench import driver
from tests.bench.meters import Tally, expected, note, out

tally = Tally(expected(), out())
app = App("bench", broker=driver.URL)
app.conf.task_ignore_result = True


@app.task(name="noop")
def noop(argument: Any) -> None:
    tally.start()
    tally.end()


@app.task(name="pick_up")
def pick_up(argument: float) -> None:
    note(time.time() - argument)


@app.task(name="hang")
def hang(argument: Any) -> None:
    note(time.time())
    time.sleep(3600)


JOBS = {"noop": noop, "pick_up": pick_up, "hang": hang}


class Celery(driver.Driver):
    async def put(self, job: str, argument: Any) -> None:
        JOBS[job].delay(argument)

    def work(self) -> None:
        program = str(Path(sys.executable).with_name("celery"))
        os.execv(
            program,
            [program, "-A", "tests.bench.drivers.celery", "worker", "-c", "1", "-l", "WARNING"],
        )


if __name__ == "__main__":
    driver.main(Celery())
