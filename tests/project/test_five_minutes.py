"""The pages of docs/five-minutes, followed to the letter, and the scripts for clusters."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT

PAGES = sorted((ROOT / "docs" / "five-minutes").glob("*.md"))
NEEDED = {"pytorch": "torch", "scipy": "scipy", "researcher": "polars", "cluster": "mpi4py"}
# These start many processes, and take longer than all others together.
LONG = ("cluster", "researcher", "simulator")
RECIPES = ROOT / "examples" / "clusters"


def follow(page: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "run_page.py"), str(page)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.timeout(300)  # seconds on a quiet machine
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in LONG)) for p in PAGES],
)
def test_a_page_can_be_followed(page: Path) -> None:
    needed = NEEDED.get(page.stem)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    done = follow(page)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) commands", done.stdout).group(1)) >= 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```sh\nexit 3\n```\n", "exit 3: exit code 3"),
        ("```sh\necho one\n```\n\n```text\ntwo\n```\n", "the page says\ntwo\n"),
        ("```sh\necho 12\n```\n\n```text\n13\n```\n", "but this was printed:\n12\n"),
        ("```python\nprint(1)\n```\n", "must be '# name.py'"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(tmp_path: Path, page: str, message: str) -> None:
    (tmp_path / "page.md").write_text(page)
    done = follow(tmp_path / "page.md")
    assert done.returncode == 1
    assert message in done.stderr


def test_numbers_may_differ_where_the_page_says_so(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "```sh\necho 1.2e-08 found\n```\n\n<!-- other numbers -->\n```text\n3 found\n```\n"
    )
    assert follow(tmp_path / "page.md").returncode == 0


def test_there_are_five_and_they_are_short() -> None:
    assert len(PAGES) == 5
    assert [page.stem for page in PAGES if len(page.read_text().splitlines()) >= 80] == []


def test_the_page_and_the_recipes_have_the_same_program() -> None:
    assert (RECIPES / "fit.py").read_text() in (ROOT / "docs/five-minutes/cluster.md").read_text()


@pytest.mark.parametrize("script", sorted(RECIPES.glob("*.sh")), ids=lambda script: script.name)
def test_a_script_is_valid_and_shown(script: Path) -> None:
    subprocess.run(["sh", "-n", str(script)], check=True)
    assert f"examples/clusters/{script.name}" in (ROOT / "docs" / "clusters.md").read_text()
    assert "python fit.py" in script.read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("script", "needed"), [("mpi.sh", "mpi4py"), ("dask.sh", "distributed")])
def test_a_script_gives_what_one_machine_gives(tmp_path: Path, script: str, needed: str) -> None:
    pytest.importorskip(needed)
    for file in ("fit.py", script):
        shutil.copy(RECIPES / file, tmp_path)
    path = f"PATH={Path(sys.executable).parent}:$PATH"
    printed = []
    for command in (f"sh {script}", "python fit.py 2 alone.mmes 1"):
        done = subprocess.run(
            f"{path} {command}", shell=True, cwd=tmp_path, check=False, capture_output=True,
            text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines()[-1])
    assert printed[0] == printed[1]
    assert "1200 evaluations" in printed[0]


def test_the_manifest_for_kubernetes_holds_together() -> None:
    yaml = pytest.importorskip("yaml")
    objects = list(yaml.safe_load_all((RECIPES / "ray_kubernetes.yaml").read_text()))
    kinds = [one["kind"] for one in objects]
    assert kinds == ["Service", "Deployment", "Deployment", "PersistentVolumeClaim", "Job"]
    service, head, worker, claim, job = objects
    assert service["spec"]["selector"] == head["spec"]["template"]["metadata"]["labels"]
    pods = [one["spec"]["template"]["spec"] for one in (head, worker, job)]
    assert len({pod["containers"][0]["image"] for pod in pods}) == 1
    for pod in pods:
        named = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == named
    port = service["spec"]["ports"][0]["port"]
    for command in (pods[1]["containers"][0]["command"], pods[2]["containers"][0]["args"]):
        assert f"--address={service['metadata']['name']}:{port}" in " ".join(command)
    assert f"ray:{worker['spec']['replicas']} " in pods[2]["containers"][0]["args"][0]
    volume = next(volume for volume in pods[2]["volumes"] if volume["name"] == "state")
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
