"""A Flask application, and its jobs."""

from __future__ import annotations

import threading
from typing import Any

from flask import Flask, current_app, g

from aioqless import Job, job
from aioqless.contrib.flask import Aioqless

queues = Aioqless()


def create_app(**config: object) -> Flask:
    app = Flask(__name__)
    app.config.from_prefixed_env("SHOP")
    app.config.update(config, SHOP_NAME="corner shop")
    queues.init_app(app)

    @app.post("/greetings/<name>")
    def put_greeting(name: str) -> str:
        return queues.client.put(greet.data(name=name))

    @app.teardown_appcontext
    def leave(_: object) -> None:
        if "seen" in g:
            g.seen.append((threading.get_ident(), current_app.config["SHOP_NAME"]))

    return app


@job(result_ttl=60, queue="mail")
def greet(job: Job[Any], name: str) -> str:
    return f"hello {name} from {current_app.config['SHOP_NAME']}"


@job(result_ttl=60, queue="mail", executor="process")
def greet_in_a_process(job: Job[Any], name: str) -> str:
    return f"hello {name} from {current_app.config['SHOP_NAME']}"


@job(result_ttl=60)
async def agreet(job: Job[Any], name: str) -> str:
    g.name = name
    return f"hello {g.name} from {current_app.config['SHOP_NAME']}"
