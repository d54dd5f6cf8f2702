"""The page on monitoring, its dashboard and its alert rules have the metrics of the code."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.metrics import NoOpMeter

from aioqless.contrib.telemetry import prometheus
from tests.pages import ROOT
from tests.programs import needs

FILES = ROOT / "docs" / "monitoring"
PAGE = (ROOT / "docs" / "monitoring.md").read_text("utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def metrics() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, type and labels of each metric for Prometheus."""
    for metric in (
        prometheus.ended,
        prometheus.seconds,
        prometheus.waited,
        prometheus.bulk_jobs,
    ):
        (family,) = metric.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield name, family.type, metric._labelnames  # noqa: SLF001  # prometheus has no other way
    for gauge in prometheus.queues.describe():
        yield gauge.name, gauge.type, tuple(gauge._labelnames)  # noqa: SLF001


def rows(heading: str) -> list[tuple[str, str, str]]:
    """The rows of a section's table of metrics: name, type, labels."""
    return re.findall(
        r"^\| `([\w.]+)` \| ([\w -]+?)(?:, s)? \| (.*?)\|", section(heading), re.MULTILINE
    )


def expressions() -> Iterator[str]:
    """Every expression of the dashboard, the rules, and the scaler for KEDA."""
    keda = msgspec.yaml.decode((ROOT / "docs/deployment/keda.yaml").read_text("utf-8"))
    yield from (trigger["metadata"]["query"] for trigger in keda["spec"]["triggers"])
    dashboard = json.loads((FILES / "grafana.json").read_text("utf-8"))
    yield from (annotation["expr"] for annotation in dashboard["annotations"]["list"])
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for group in msgspec.yaml.decode((FILES / "alerts.yml").read_text("utf-8"))["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def test_page_lists_the_metrics_for_prometheus_with_type_and_labels() -> None:
    listed = {
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in rows("Prometheus")
    }
    assert listed == set(metrics())


def test_page_lists_the_metrics_for_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[tuple[str, str]] = []
    for kind in ("counter", "histogram", "observable_gauge"):

        def create(
            _: object, name: str, *args: object, kind: str = kind, **options: object
        ) -> None:
            created.append((name, kind.removeprefix("observable_")))

        monkeypatch.setattr(NoOpMeter, f"create_{kind}", create)
    monkeypatch.setattr("opentelemetry.metrics.get_meter", NoOpMeter)
    runpy.run_path(str(ROOT / "aioqless/contrib/telemetry/opentelemetry.py"))
    listed = [(name, kind) for name, kind, _ in rows("OpenTelemetry")]
    assert listed == created


@pytest.mark.parametrize("expression", list(expressions()))
def test_expressions_name_metrics_and_labels_that_exist(expression: str) -> None:
    known = {name: (kind, labels) for name, kind, labels in metrics()}
    for name, selector in re.findall(r"(aioqless_\w+)(?:\{(.*?)\})?", expression):
        kind, labels = known[name.removesuffix("_bucket")]
        assert name.endswith("_bucket") == (kind == "histogram")
        assert set(re.findall(r"(\w+)=", selector)) <= {*labels, "job"}
    grouped = " ".join(re.findall(r"by \(([^)]+)\)", expression)).replace(",", " ").split()
    assert set(grouped) <= {"job", "le"}.union(*(labels for _, labels in known.values()))


def test_dashboard_is_what_its_program_writes() -> None:
    pytest.importorskip("grafana_foundation_sdk")
    written = runpy.run_path(str(FILES / "dashboard.py"))["dashboard_json"]()
    assert (FILES / "grafana.json").read_text("utf-8") == written


@needs("promtool")
@pytest.mark.parametrize(
    "check",
    [["check", "rules", "alerts.yml"], ["check", "config", "prometheus.yml"]],
    ids=lambda check: check[-1],
)
def test_promtool_accepts_the_rules_and_the_configuration(check: list[str]) -> None:
    ended = subprocess.run(
        ["promtool", *check], cwd=FILES, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


SERIES: dict[str, list[dict[str, str]]] = {
    "AioqlessNoMetrics": [],
    "AioqlessQueueLag": [
        {"series": 'aioqless_queue_lag_seconds{job="aioqless",queue="mail"}', "values": "400x120"}
    ],
    "AioqlessQueueNotServed": [
        {
            "series": 'aioqless_queue_delay_seconds{job="aioqless",queue="mail",'
            'reason="no_worker"}',
            "values": "601x120",
        }
    ],
    **{
        alert: [
            {
                "series": f'aioqless_runs_total{{job="aioqless",queue="mail",klass="Send",'
                f'outcome="{outcome}"}}',
                "values": "0+6x120",
            }
        ]
        for alert, outcome in (
            ("AioqlessFailureRate", "failed"),
            ("AioqlessBudgetBurnsFast", "failed"),
            ("AioqlessBudgetBurnsSlowly", "failed"),
            ("AioqlessLockLost", "lock_lost"),
            ("AioqlessOutcomeRefused", "refused"),
        )
    },
    "AioqlessFailedJobs": [
        {"series": 'aioqless_failed_jobs{job="aioqless",group="typo"}', "values": "101x120"}
    ],
    "AioqlessArchiveUnread": [
        {"series": 'aioqless_archive_lag_seconds{job="aioqless"}', "values": "90000x120"}
    ],
}


def check_rules(folder: Path, tests: list[dict[str, Any]]) -> None:
    """Let promtool run tests of the alert rules."""
    file = folder / "tests.yml"
    file.write_text(json.dumps({"rule_files": [str(FILES / "alerts.yml")], "tests": tests}))
    ended = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@needs("promtool")
def test_each_alert_fires_when_its_series_say_so(tmp_path: Path) -> None:
    rules: list[dict[str, Any]] = msgspec.yaml.decode((FILES / "alerts.yml").read_text("utf-8"))[
        "groups"
    ][0]["rules"]
    assert {rule["alert"] for rule in rules} == set(SERIES)
    fires = 'count by (alertname) (ALERTS{alertname="%s",alertstate="firing"})'
    tests = [
        {
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [
                {
                    "expr": fires % alert,
                    "eval_time": "75m",
                    "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}],
                }
            ],
        }
        for alert, series in SERIES.items()
    ]
    check_rules(tmp_path, tests)


@needs("promtool")
@pytest.mark.parametrize("reason", ["paused", "rate_limit", "concurrency_limit", "workers_busy"])
def test_no_alert_asks_for_a_worker_where_a_limit_or_a_pause_holds_jobs(
    tmp_path: Path, reason: str
) -> None:
    of_mail = 'job="aioqless",queue="mail"'
    series = {
        f'aioqless_queue_delay_seconds{{{of_mail},reason="{reason}"}}': "4000x120",
        f"aioqless_queue_lag_seconds{{{of_mail}}}": "4000x120",
        f'aioqless_queue_jobs{{{of_mail},state="waiting"}}': "3x120",
        f'aioqless_queue_jobs{{{of_mail},state="running"}}': "0x120",
    }
    wrong = "AioqlessQueueNotServed" + ("|AioqlessQueueLag" if reason == "paused" else "")
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": f'ALERTS{{alertname=~"{wrong}"}}', "eval_time": "75m", "exp_samples": []}
        ],
    }
    check_rules(tmp_path, [test])
