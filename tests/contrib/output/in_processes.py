"""Handlers that run in a process."""

import threading

from aioqless import Job, job


@job(klass="EmitsInProcess", executor="process")
def handler(job: Job) -> None:
    threads = [threading.Thread(target=job.emit, args=({"n": n},)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for value in (object(), False, "end"):
        job.emit(value)
