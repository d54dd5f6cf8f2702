"""put: a new job, or one that exists and moves."""

from aioqless.scripts import Scripts


async def test_a_job_that_was_put_waits(scripts: Scripts) -> None:
    assert await scripts("put", queue="mail", jid="a", klass="Greet", data='{"n": 1}', now=1, delay=0) == "a"
    job = await scripts("get", jid="a")
    assert (job["state"], job["queue"], job["klass"], job["data"]) == ("waiting", "mail", "Greet", '{"n": 1}')
