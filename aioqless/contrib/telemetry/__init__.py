"""What other tools hear of jobs. Each is a module that a worker is given beside its own: `aioqless
worker app.jobs aioqless.contrib.telemetry.sentry`.

opentelemetry.py   a trace from put to finish, across processes
prometheus.py      counts, durations, depths and lags of queues
sentry.py          errors that handlers raise
"""
