"""The sections of the paper plan what the paper did, and show what there is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.availability import missing_pieces
from mmes.lab.experiments.plan import Strategy
from mmes.lab.experiments.reproduce import (
    Effort,
    chosen_sections,
    material_of,
    measurement_of,
    reproduce_section,
)
from mmes.lab.experiments.results.formats import to_text
from mmes.lab.experiments.results.store import Store
from mmes.lab.experiments.sections import SECTIONS, Extent, Material, accuracy, variants
from mmes.strategies import get_strategy
from pretended import make_outcome

EVERY = pytest.mark.parametrize("name", SECTIONS)


@EVERY
@pytest.mark.parametrize("extent", Extent)
def test_every_section_shows_something_with_nothing_run(name, extent):
    section = SECTIONS[name]
    findings = section.present(Material(extent, section.runs(extent), {}))
    for table in findings.tables:
        assert to_text(table)


@EVERY
def test_every_section_shows_its_runs(name):
    """With every quick run finished there are numbers, curves and no run without its cell."""
    section = SECTIONS[name]
    runs = section.runs(Extent.QUICK)
    outcomes = {run.key: make_outcome(run.seed, evaluations=1000 + run.seed) for run in runs}
    findings = section.present(Material(Extent.QUICK, runs, outcomes))
    if not runs:
        return
    lines = [line for table in findings.tables for line in table.lines]
    shown = {key for line in lines for cell in line.cells.values() for key in cell.keys}
    assert shown == set(outcomes)
    assert findings.charts


@EVERY
def test_full_is_at_least_as_much_as_quick(name):
    quick, full = (SECTIONS[name].runs(extent) for extent in Extent)
    assert len(full) >= len(quick)


@EVERY
def test_options_of_the_plans_are_options_of_the_strategies(name):
    run_options = {"restarts"}
    for extent in Extent:
        for run in SECTIONS[name].runs(extent):
            if run.objective.name.startswith("clustering/"):
                continue
            known = {option.name for option in get_strategy(run.strategy.name).option_table()}
            assert {key for key, _ in run.strategy.options} <= known | run_options


def test_the_published_protocol_of_the_1000_dimensional_table():
    runs = [r for r in SECTIONS["basic"].plan(Extent.FULL) if r.strategy.label != "LM-CMA, fitted"]
    assert len(runs) == 10 * 7 * 20
    assert {(r.objective.label, r.dimension) for r in runs} == set(paper.table("basic_1000d").rows)
    assert {r.strategy.label for r in runs} == set(paper.table("basic_1000d").algorithms)
    assert {(r.max_evaluations, r.target, r.start, r.sigma0) for r in runs} == {
        (10**8, 1e-8, (-5.0, 5.0), 3.0)
    }


@pytest.mark.parametrize(("suite", "count"), [("cec2010", 20), ("cec2013", 15)])
def test_the_published_protocol_of_the_suites(suite, count):
    runs = [r for r in SECTIONS[suite].plan(Extent.FULL) if r.strategy.label == "MMES"]
    assert len(runs) == count * 25
    assert {(r.max_evaluations, r.bounds, r.start, r.sigma0) for r in runs} == {
        (3_000_000, "clip", None, None)
    }
    assert {(r.objective.label, r.dimension) for r in runs} == set(paper.table(suite).rows)


def test_ackley_of_2013_is_the_plain_one():
    names = {r.objective.name for r in SECTIONS["cec2013"].plan(Extent.FULL)}
    assert {"lsgo2013/f3-plain", "lsgo2013/f6-plain", "lsgo2013/f10-plain"} <= names
    assert "lsgo2013/f3" not in names


def test_missing_strategies_are_named_and_left_out():
    run = SECTIONS["noise"].plan(Extent.QUICK)[0]
    strange = run.__class__(Strategy("no-such", "NoSuch"), run.objective, 10, 1, 100)
    assert missing_pieces([run, strange]) == ["there is no strategy 'no-such' (NoSuch) here"]


def test_unknown_sections_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="no section 'nope'; there are accuracy"):
        chosen_sections(["nope"])
    assert [s.name for s in chosen_sections([])] == list(SECTIONS)


def test_a_section_from_run_to_table(tmp_path, monkeypatch):
    """Real runs of a small choice: tables and figures on disk, and a second call makes none."""
    section = variants.NOISE
    effort = Effort(workers=2, problems=("Cigar",), seeds=1, show=False)
    small = variants.basic_runs(
        variants.pairs_of(["Cigar"], variants.NOISES), dimension=20, count=2, max_evaluations=30_000
    )
    section = section.__class__(
        section.name, section.title, section.text, section.present, lambda extent: small
    )
    report, findings = reproduce_section(section, Extent.QUICK, tmp_path, effort)
    assert report is not None
    assert (report.finished, report.failed) == (3, {})
    cells = findings.tables[0].lines[0].cells
    assert all(cell.summary is not None and cell.successes == 1 for cell in cells.values())
    names = {path.name for path in (tmp_path / "noise").iterdir()}
    assert {"noise.csv", "noise.tex", "noise-cigar-20.png", "noise-cigar-20.svg"} <= names
    again, _ = reproduce_section(section, Extent.QUICK, tmp_path, effort)
    assert again is not None
    assert (again.finished, again.skipped) == (0, 3)
    assert len(Store(tmp_path / "runs").rows()) == 3


def test_the_errors_of_a_gaussian_sample_vanish():
    """20000 normal samples: NV within 0.01 of 1 and SME_4 within 0.05 of 0 (beyond 5 sigma)."""
    rng = np.random.default_rng(1)
    variance = 10.0 ** np.linspace(0, 3, 50)
    samples = rng.standard_normal((20_000, 50)) * np.sqrt(variance)
    nv, fourth, _ = accuracy.errors(samples, variance)
    assert nv == pytest.approx(1.0, abs=0.01)
    assert fourth == pytest.approx(0.0, abs=0.15)


@pytest.mark.parametrize("strength", [2, 8, 32])
def test_the_exact_fourth_moment_follows_the_papers_fit(strength):
    exact = accuracy.expected_fourth(accuracy.law(strength))
    assert exact == pytest.approx(accuracy.published_fit("SME_4", strength), rel=0.02)


def test_measurements_are_kept(tmp_path):
    section = SECTIONS["accuracy"]
    counted = []

    def measure(extent):
        counted.append(extent)
        return {
            "strengths": [2],
            "NV": [[1.0]],
            "SME_4": [[34.0]],
            "SME_6": [[1e4]],
            "exact_SME_4": [34.5],
        }

    section = section.__class__(
        section.name, section.title, section.text, section.present, measure=measure
    )
    for _ in range(2):
        measurement_of(section, Extent.QUICK, tmp_path, make=True)
    assert counted == [Extent.QUICK]
    assert json.loads((tmp_path / "accuracy" / "measurement-quick.json").read_text())["NV"] == [
        [1.0]
    ]
    findings = section.present(material_of(section, Extent.QUICK, tmp_path))
    assert findings.tables[0].lines[0].cells["SME_4"].paper == pytest.approx(69.66 / 2.04)
