"""Contents of the wheel: the code, the Lua files, py.typed; no tests."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from readme_renderer import markdown

import aioqless
from tests.source import PACKAGE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(folder),
    ]
    subprocess.run(command, cwd=PACKAGE.parent, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_wheel_has_exactly_the_files_of_the_package(wheel: zipfile.ZipFile) -> None:
    here = {
        str(file.relative_to(PACKAGE.parent))
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    brought = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert brought == here
    assert {
        "aioqless/py.typed",
        "aioqless/lua/pop_many.lua",
        "aioqless/lua/lib/base/keys.lua",
        "aioqless/contrib/dashboard/lua/audit_log.lua",
    } <= brought


def test_wheel_has_the_command_the_fixtures_and_the_license(wheel: zipfile.ZipFile) -> None:
    (described,) = [
        Path(name).parent for name in wheel.namelist() if name.endswith(".dist-info/METADATA")
    ]
    entries = wheel.read(f"{described}/entry_points.txt").decode()
    assert (
        "aioqless = aioqless.__main__:main" in entries
        and "aioqless = aioqless.testing.plugin" in entries
    )
    assert "MIT" in wheel.read(f"{described}/licenses/LICENSE").decode()
    metadata = wheel.read(f"{described}/METADATA").decode()
    assert "Requires-Python: >=3.11" in metadata
    for extra in (
        "encryption",
        "opentelemetry",
        "prometheus",
        "private-redis",
        "reload",
        "sentry",
        "web",
    ):
        assert f"Provides-Extra: {extra}" in metadata


def test_readme_is_rendered_by_pypi_with_links_and_images_that_work_there(
    wheel: zipfile.ZipFile,
) -> None:
    (described,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    description = email.message_from_string(wheel.read(described).decode()).get_payload()
    page = markdown.render(str(description)) or ""
    links = re.findall(r'href="([^"#][^"]*)"', page)
    images = re.findall(r'src="([^"]+)"', page)
    assert links
    assert images
    assert all(link.startswith("https://") for link in links)
    assert all(image.startswith("https://raw.githubusercontent.com/") for image in images)
    assert [
        name for name in (*links, *images) if not (PACKAGE.parent / path_of(name)).exists()
    ] == []


def test_changelog_begins_with_the_version_of_the_package() -> None:
    changelog = (PACKAGE.parent / "docs" / "changelog.md").read_text("utf-8")
    heading = re.search(r"^## (\S+) - (?:unreleased|\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    assert heading and heading[1] == aioqless.__version__


def path_of(link: str) -> str:
    """Return the path in the repository that a link leads to."""
    return re.sub(r"https://[^/]+/aioqless/aioqless/(?:blob/)?main/|#.*", "", link)
