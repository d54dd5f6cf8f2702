"""What workers have run, by klass and queue, and what they are.

reader.py                      Metrics            reads it: `client.metrics`
worker_metrics.py              WorkerMetrics      counts the runs of a worker, and reports them
rates.py                       rates_between      rates of queues between two samples
generated_commands.py          MetricsCommands    the scripts in lua/
"""

from aioqless.contrib.metrics.reader import (
    KlassMetrics,
    Mark,
    Metrics,
    Quantiles,
    RunTotals,
    WorkerFacts,
    WorkerSample,
)

__all__ = [
    "KlassMetrics",
    "Mark",
    "Metrics",
    "Quantiles",
    "RunTotals",
    "WorkerFacts",
    "WorkerSample",
]
