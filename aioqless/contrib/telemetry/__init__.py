"""Metrics, traces and error reports, as modules that a worker loads beside its own.

For example `aioqless worker app.jobs aioqless.contrib.telemetry.sentry`. Each module needs the
extra of its name.

opentelemetry.py   traces from put to finish, across processes; metrics (aioqless[opentelemetry])
prometheus.py      counts, durations, depths and lags of queues (aioqless[prometheus])
metrics_server.py  serves those of one process, or of all below a supervisor
queue_readings.py  reads depths and lags of queues
sentry.py          exceptions that handlers raise (aioqless[sentry])
"""
