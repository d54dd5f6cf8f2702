"""The files of docs/deployment, by the validators of their systems."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from aioqless.cli.worker_options import parse_options
from tests.programs import needs

FOLDER = Path(__file__).parents[2] / "docs" / "deployment"
PAGE = FOLDER.parent / "deployment.md"
TOOLS = Path(sys.executable).parent


def read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(read(name)))


def check(*command: str | Path) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr


def worker_commands() -> dict[str, list[str]]:
    """The words behind `aioqless worker` in each file."""
    image = re.search(r"^CMD (\[.*\])$", read("Dockerfile"), re.MULTILINE)
    unit = read("app.service")
    service = re.search(r"^ExecStart=.* -m aioqless (worker .*)$", unit, re.MULTILINE)
    assert image and service
    return {
        "Dockerfile": yaml.safe_load(image[1]),
        "compose.yaml": documents("compose.yaml")[0]["services"]["worker"]["command"].split(),
        "kubernetes.yaml": documents("kubernetes.yaml")[0]["spec"]["template"]["spec"][
            "containers"
        ][0]["args"],
        "app.service": service[1].split(),
        "Procfile": read("Procfile").partition("-m aioqless ")[2].split(),
    }


@pytest.mark.parametrize("name", worker_commands())
def test_worker_accepts_its_command_line(name: str) -> None:
    word, *arguments = worker_commands()[name]
    assert word == "worker"
    assert parse_options(arguments).modules == ["app.jobs"]


@pytest.mark.parametrize("name", ["Dockerfile", "kubernetes.yaml"])
def test_probes_and_scrapes_reach_the_container(name: str) -> None:
    options = parse_options(worker_commands()[name][1:])
    assert (options.health, options.metrics) == ("0.0.0.0:8080", "0.0.0.0:9100")


def test_hadolint_accepts_the_dockerfile() -> None:
    check(TOOLS / "hadolint", FOLDER / "Dockerfile")


def test_image_runs_as_no_root() -> None:
    assert re.search(r"^USER [1-9]\d*$", read("Dockerfile"), re.MULTILINE)


def test_compose_file_is_valid() -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    check(TOOLS / "check-jsonschema", *schema, FOLDER / "compose.yaml")


def test_kubernetes_manifests_are_valid() -> None:
    for manifest in documents("kubernetes.yaml"):
        kubernetes_validate.validate(manifest, "1.30", strict=True)


@needs("promtool")
def test_keda_scales_the_workers_of_the_manifests_by_a_valid_query(tmp_path: Path) -> None:
    (scaled,) = documents("keda.yaml")
    worker = documents("kubernetes.yaml")[0]
    assert scaled["spec"]["scaleTargetRef"]["name"] == worker["metadata"]["name"]
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["type"] == "prometheus"
    assert trigger["metadata"].keys() == {"serverAddress", "query", "threshold"}
    series = [
        {
            "series": f'aioqless_queue_jobs{{queue="mail",state="{state}",instance="{n}"}}',
            "values": "5",
        }
        for state in ("waiting", "running", "scheduled")
        for n in (1, 2)
    ]
    expected = {
        "expr": trigger["metadata"]["query"],
        "exp_samples": [{"labels": "{}", "value": 10}],
    }
    tests = {"tests": [{"input_series": series, "promql_expr_test": [expected]}]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))
    check("promtool", "test", "rules", tmp_path / "tests.yml")


@needs("promtool")
def test_prometheus_configuration_is_valid() -> None:
    check("promtool", "check", "config", FOLDER / "prometheus.yml")


@needs("systemd-analyze")
def test_systemd_unit_is_valid(tmp_path: Path) -> None:
    unit = read("app.service")
    assert "/srv/app/.venv/bin/python" in unit
    # its command must be a program that exists
    (tmp_path / "app.service").write_text(unit.replace("/srv/app/.venv/bin/python", "/usr/bin/env"))
    check("systemd-analyze", "verify", tmp_path / "app.service")


def test_page_links_every_file() -> None:
    linked = set(re.findall(r"\(deployment/([\w.-]+)\)", PAGE.read_text("utf-8")))
    assert linked == {file.name for file in FOLDER.iterdir()}


def test_service_managers_wait_longer_than_the_grace_period() -> None:
    shutdown_timeout = parse_options(["app.jobs"]).shutdown_timeout
    unit = re.search(r"^TimeoutStopSec=(\d+)$", read("app.service"), re.MULTILINE)
    assert unit
    compose = documents("compose.yaml")[0]["services"]["worker"]["stop_grace_period"]
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    for seconds in (unit[1], compose.removesuffix("s"), pod["terminationGracePeriodSeconds"]):
        assert int(seconds) > shutdown_timeout + 10
    assert shlex.split(read("Procfile"))[0] == "worker:"
