"""Writes grafana.json: the dashboard for metrics of `aioqless worker --metrics`.

`pip install grafana-foundation-sdk`, then `python docs/monitoring/dashboard.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import StackingMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

FILE = Path(__file__).with_name("grafana.json")
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
JOB, QUEUE = 'job=~"$job"', 'job=~"$job",queue=~"$queue"'
RATE = "$__rate_interval"


class Graph(NamedTuple):
    """A panel with lines over time."""

    title: str
    description: str
    unit: str
    expressions: dict[str, str]  # by the legend of their lines
    stacked: bool = False


STATS = {
    "Running": ("short", f'sum(max by (queue) (aioqless_queue_jobs{{{QUEUE},state="running"}}))'),
    "Waiting": ("short", f'sum(max by (queue) (aioqless_queue_jobs{{{QUEUE},state="waiting"}}))'),
    "Longest lag": ("s", f"max(aioqless_queue_lag_seconds{{{QUEUE}}})"),
    "Failed": ("short", f"sum(max by (group) (aioqless_failed_jobs{{{JOB}}}))"),
}
GRAPHS = [
    Graph(
        "Runs",
        "Runs that ended, by outcome.",
        "ops",
        {"{{outcome}}": f"sum by (outcome) (rate(aioqless_runs_total{{{QUEUE}}}[{RATE}]))"},
        stacked=True,
    ),
    Graph(
        "Failures",
        "Runs that failed for good, by klass.",
        "ops",
        {
            "{{klass}}": "sum by (klass) "
            f'(rate(aioqless_runs_total{{{QUEUE},outcome="failed"}}[{RATE}]))'
        },
    ),
    Graph(
        "Duration",
        "How long runs take: median and 95th percentile, by klass.",
        "s",
        {
            f"p{share * 100:.0f} {{{{klass}}}}": f"histogram_quantile({share}, "
            f"sum by (le, klass) (rate(aioqless_run_seconds_bucket{{{QUEUE}}}[{RATE}])))"
            for share in (0.5, 0.95)
        },
    ),
    Graph(
        "Wait",
        "How long jobs wait for a worker once they may run: median and 95th percentile, by klass.",
        "s",
        {
            f"p{share * 100:.0f} {{{{klass}}}}": f"histogram_quantile({share}, "
            f"sum by (le, klass) (rate(aioqless_wait_seconds_bucket{{{QUEUE}}}[{RATE}])))"
            for share in (0.5, 0.95)
        },
    ),
    Graph(
        "Running jobs",
        "Jobs that run now.",
        "short",
        {"{{queue}}": f'max by (queue) (aioqless_queue_jobs{{{QUEUE},state="running"}})'},
        stacked=True,
    ),
    Graph(
        "Saturation",
        "Share of the workers' slots that run jobs.",
        "percentunit",
        {
            "busy": f"sum(max by (worker) (aioqless_worker_busy_slots{{{JOB}}})) "
            f"/ sum(max by (worker) (aioqless_worker_slots{{{JOB}}}))"
        },
    ),
    Graph(
        "Memory",
        "Memory of the workers' processes.",
        "bytes",
        {"{{worker}}": f"max by (worker) (aioqless_worker_memory_bytes{{{JOB}}})"},
    ),
    Graph(
        "Waiting jobs",
        "Jobs that could run now.",
        "short",
        {"{{queue}}": f'max by (queue) (aioqless_queue_jobs{{{QUEUE},state="waiting"}})'},
        stacked=True,
    ),
    Graph(
        "Lag",
        "For how long the next job of a queue has been waiting.",
        "s",
        {"{{queue}}": f"max by (queue) (aioqless_queue_lag_seconds{{{QUEUE}}})"},
    ),
    Graph(
        "Jobs by state",
        "All jobs of the queues.",
        "short",
        {"{{state}}": f"sum by (state) (max by (queue, state) (aioqless_queue_jobs{{{QUEUE}}}))"},
        stacked=True,
    ),
    Graph(
        "Failed jobs",
        "Failed jobs that wait for a decision, by group.",
        "short",
        {"{{group}}": f"max by (group) (aioqless_failed_jobs{{{JOB}}})"},
        stacked=True,
    ),
    Graph(
        "Lost locks and refused outcomes",
        "Runs whose outcome was not stored.",
        "ops",
        {
            "{{outcome}}": "sum by (outcome) "
            f'(rate(aioqless_runs_total{{{QUEUE},outcome=~"lock_lost|refused"}}[{RATE}]))'
        },
    ),
    Graph(
        "Archive",
        "For how long the oldest entry of the archive has been unread, and how many there are.",
        "short",
        {
            "seconds unread": f"max(aioqless_archive_lag_seconds{{{JOB}}})",
            "entries": f"max(aioqless_archive_entries{{{JOB}}})",
        },
    ),
]
# The SDK has no field for "Series value as timestamp".
DEPLOYS = {
    "name": "Deploys",
    "datasource": {"type": "prometheus", "uid": "${datasource}"},
    "enable": True,
    "iconColor": "blue",
    "expr": f"max by (text) (aioqless_mark_timestamp_seconds{{{JOB}}}) * 1000",
    "titleFormat": "{{text}}",
    "useValueForTime": True,
}


def dashboard_json() -> str:
    """Return the dashboard as Grafana imports it."""
    built = (
        dashboard.Dashboard("aioqless")
        .uid("aioqless")
        .tags(["aioqless"])
        .refresh("30s")
        .time("now-3h", "now")
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
        )
        .with_variable(_variable("job"))
        .with_variable(_variable("queue"))
    )
    for title, (unit, expression) in STATS.items():
        built = built.with_panel(
            stat.Panel()
            .title(title)
            .datasource(SOURCE)
            .unit(unit)
            .height(4)
            .span(6)
            .with_target(prometheus.Dataquery().expr(expression).ref_id("A").datasource(SOURCE))
        )
    for graph in GRAPHS:
        panel = (
            timeseries.Panel()
            .title(graph.title)
            .description(graph.description)
            .datasource(SOURCE)
            .unit(graph.unit)
            .min(0)
            .fill_opacity(20 if graph.stacked else 0)
            .height(8)
            .span(12)
        )
        if graph.stacked:
            panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
        for number, (legend, expression) in enumerate(graph.expressions.items()):
            panel = panel.with_target(
                prometheus.Dataquery()
                .expr(expression)
                .legend_format(legend)
                .ref_id("AB"[number])
                .datasource(SOURCE)
            )
        built = built.with_panel(panel)
    model = json.loads(JSONEncoder().encode(built.build()))
    model["annotations"] = {"list": [DEPLOYS]}
    return json.dumps(model, sort_keys=True, indent=2) + "\n"


def _variable(label: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(label)
        .label(label.capitalize())
        .datasource(SOURCE)
        .query(f"label_values(aioqless_queue_jobs, {label})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
    )


if __name__ == "__main__":
    FILE.write_text(dashboard_json(), "utf-8")
