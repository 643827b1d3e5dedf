"""CONTRIBUTING.md: its table is the tree, its five how-tos work as they stand there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmes
from mmes import extend
from mmes.extend import BOXES, KERNELS, SampleCall, StepLaw
from mmes.kernels import choose_kernel
from mmes.problems import problem
from mmes.testing import strategies
from paths import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
BLOCKS = dict(re.findall(r"```python (\w+)\n(.*?)```", PAGE, re.DOTALL))
# What the blocks take for granted.
NAMES = {**vars(extend), **vars(problem), "Any": Any, "dataclass": dataclass, "np": np}
SOURCE = Path(mmes.__file__).parent


def built(kind: str) -> dict[str, Any]:
    """Run a block of the page, and return what it defines."""
    names = dict(NAMES, __name__=__name__)
    exec(compile(BLOCKS[kind], f"CONTRIBUTING.md, {kind}", "exec"), names)
    return names


def sphere(x) -> float:
    return float((x * x).sum())


def rows(title: str) -> dict[str, str]:
    """Return the table after a line of the page: the places, and what is said of each."""
    table = PAGE.partition(f"{title}\n")[2].partition("\n| --- | --- |\n")[2].partition("\n\n")[0]
    found = {}
    for line in table.splitlines():
        places, text = line.strip("| ").split(" | ", 1)
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", places), text)
    return found


def test_the_table_has_a_row_for_each_package_and_each_file_beside_them() -> None:
    packages = {
        f"{path.parent.relative_to(SOURCE).as_posix()}/"
        for path in SOURCE.rglob("__init__.py")
        if path.parent not in (SOURCE, *SOURCE.rglob("data"))
    }
    files = {path.name for path in SOURCE.glob("*.py")}
    assert set(rows("## Where things are")) == packages | files


def test_the_table_names_files_that_exist() -> None:
    for place, text in rows("## Where things are").items():
        folder = SOURCE / place if place.endswith("/") else SOURCE
        for name in re.findall(r"`([\w/]+\.py)`", text):
            assert (folder / name).exists() or (SOURCE / name).exists(), f"{place}: {name}"


def test_what_lies_beside_the_package_is_named_too() -> None:
    places = rows("Beside `src/mmes`:")
    assert {"native/", "tests/", "docs/", "tools/"} < set(places)
    assert [place for place in places if not (ROOT / place).is_dir()] == []


def test_the_page_shows_five_in_a_few_lines_each() -> None:
    assert set(BLOCKS) == {"strategy", "kernel", "evaluator", "problem", "box"}
    for kind, text in BLOCKS.items():
        lines = [line for line in text.splitlines() if line.strip()]
        assert len(lines) < 30, kind


def test_a_strategy_from_the_page() -> None:
    walk = built("strategy")["Walk"]
    for check in (strategies.check_candidates, strategies.check_state, strategies.check_growth):
        check(walk)
    r = mmes.minimize(sphere, np.ones(20), 0.3, strategy=walk, seed=1, max_evaluations=2000)
    assert r.fun < sphere(np.ones(20)) / 10


@pytest.fixture
def registries():
    kernels, boxes = dict(KERNELS), dict(BOXES)
    yield
    for registry, before in ((KERNELS, kernels), (BOXES, boxes)):
        registry.clear()
        registry.update(before)


@pytest.mark.usefixtures("registries")
def test_a_kernel_from_the_page() -> None:
    built("kernel")
    kernel = choose_kernel("counting")
    out = kernel.population(4, 5)
    kernel.sample(SampleCall(out, 4, kernel.vector(5), 1.0, None, StepLaw(), None, 1, 0))
    assert kernel.sampled == 4
    assert np.isfinite(out).all()


def test_an_evaluator_from_the_page() -> None:
    doubled = built("evaluator")["Doubled"](sphere)
    r = mmes.minimize(None, np.ones(8), 0.5, workers=doubled, seed=1, target=1e-6)
    assert r.success


def test_a_problem_from_the_page() -> None:
    valley = built("problem")["valley"](30)
    assert valley(np.zeros(30)) == 0
    r = mmes.minimize(valley, bounds=valley.bounds, seed=1, target=1e-6)
    assert r.success


@pytest.mark.usefixtures("registries")
def test_a_box_treatment_from_the_page() -> None:
    built("box")
    es = mmes.MMES(np.zeros(6), 3.0, bounds=(-1.0, 1.0), bounds_handling="wrap", seed=1)
    points = es.ask()
    assert ((points >= -1) & (points <= 1)).all()
    assert np.unique(points).size > 40  # nothing sticks to a wall
    es.tell((points**2).sum(1))
    other = mmes.MMES.from_state(es.state())
    np.testing.assert_array_equal(es.ask(), other.ask())
