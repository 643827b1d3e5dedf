"""What is said about the package in several places is the same everywhere."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from typing import Any

import pytest

import mmes
from paths import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert mmes.__version__ == version
    assert re.search(r"^version: (.*)$", text("CITATION.cff"), re.M).group(1) == version  # type: ignore[union-attr]
    assert f'version: "{version}"' in text("packaging/recipe.yaml")
    assert f"## {version}" in text("CHANGELOG.md")


def test_the_recipe_has_all_that_a_build_needs() -> None:
    """Failed before: conda would have built without hatch-fancy-pypi-readme."""
    host = text("packaging/recipe.yaml").partition("host:")[2].partition("run:")[0]
    for needed in PYPROJECT["build-system"]["requires"]:
        assert f"- {needed.replace('>=', ' >=')}\n" in host


def test_the_metadata_have_no_placeholder_addresses() -> None:
    """Failed before: all addresses led to example.invalid."""
    assert "example." not in text("pyproject.toml")
    assert "urls" not in PROJECT or all(u.startswith("https://") for u in PROJECT["urls"].values())


def test_every_notice_is_among_the_licence_files() -> None:
    notices = [file.relative_to(ROOT) for file in (ROOT / "src").rglob("NOTICE*")]
    assert len(notices) >= 4
    patterns = PROJECT["license-files"]
    for notice in notices:
        assert any(fnmatch(str(notice), pattern) for pattern in patterns), notice


def test_the_long_description_has_no_links_into_the_repository() -> None:
    setting = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    words = text("README.md")
    assert len(re.findall(r"\]\((?!https://|#)[^)]+\)", words)) >= 5
    for rule in setting["substitutions"]:
        words = re.sub(rule["pattern"], rule["replacement"], words)
    assert "![" not in words
    assert "MMES in 100 lines" in words
    targets = re.findall(r"\]\(([^)]+)\)", words)
    assert all(target.startswith(("https://", "#")) for target in targets)


def test_the_readme_is_short() -> None:
    assert len(text("README.md").split()) <= 600


def test_all_extras_but_the_heavy_ones() -> None:
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert not {"torch", "jax", "ray"} & set(re.split(r"[\[\],]", everything))


def test_what_is_tested_before_a_wheel_is_published_exists() -> None:
    for command in PYPROJECT["tool"]["cibuildwheel"]["test-command"]:
        for place in re.findall(r"\{project\}/(\S+)", command):
            assert (ROOT / place).exists(), place


def test_the_lock_has_every_requirement() -> None:
    locked = {name.lower() for name in re.findall(r"^([\w.-]+)==", text("requirements.lock"), re.M)}
    asked = [*PROJECT["dependencies"]]
    for requirements in PROJECT["optional-dependencies"].values():
        asked += requirements
    names = {re.match(r"[\w.-]+", line).group().lower() for line in asked}  # type: ignore[union-attr]
    missing = {name.replace("_", "-") for name in names} - locked - {"mmes"}
    assert not missing, "make lock"


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_the_workflows_are_yaml(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(text(f".github/workflows/{name}"))["jobs"]
    assert all(step for job in jobs.values() for step in job["steps"])
    for target in re.findall(r"run: make (.*)$", text(f".github/workflows/{name}"), re.M):
        for word in target.split():
            assert re.search(rf"^{word}:", text("Makefile"), re.M), word


def test_a_release_builds_the_wheels_that_are_published() -> None:
    """The two lists of wheels, of this machine's release and of cibuildwheel, are the same."""
    program = text("packaging/release.py")
    tags = dict(re.findall(r'"(3\.\d+)": "(cp\d+)-', program))
    built = {f"cp{version.replace('.', '')}-*" for version in tags}
    assert built == set(PYPROJECT["tool"]["cibuildwheel"]["build"])
    assert f'wheel.py-api = "{tags["3.12"]}"' in text("pyproject.toml")
    pages = {file.stem for file in (ROOT / "docs" / "five-minutes").glob("*.md")}
    assert {page for page in pages if f'"{page}"' in program} == pages


def test_only_a_tag_publishes_and_no_password_is_needed() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(text(".github/workflows/release.yml"))["jobs"]
    (job,) = (job for job in jobs.values() if "publish" in str(job["steps"]))
    assert "refs/tags/v" in job["if"]
    assert job["permissions"] == {"id-token": "write"}
    assert set(job["needs"]) == set(jobs) - {"publish"}
    assert "secrets." not in text(".github/workflows/release.yml")
    systems = jobs["wheels"]["strategy"]["matrix"]["os"]
    wheels = len(systems) * len(PYPROJECT["tool"]["cibuildwheel"]["build"])
    assert f"-eq {wheels}\n" in text(".github/workflows/release.yml")
