"""What workers have run, by klass and queue, and what they are, as their beats report it.

reader.py                      Metrics            reads it: `client.metrics`
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
