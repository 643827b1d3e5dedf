"""The paper's printed ranks and p-values come out of its own medians."""

from __future__ import annotations

from math import inf

import pytest

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.statistics import Mark, RankTable, friedman


def ranks_of(suite: str) -> RankTable:
    """Rank the algorithms of the paper's rank table by their published medians; N/A comes last."""
    table = paper.table(suite)
    columns = paper.load("ranks")["suites"][suite]["algorithms"]
    rows = [[table.cells[problem, n, a].median for a in columns] for problem, n in table.rows]
    return friedman(columns, [[inf if v is None else v for v in row] for row in rows])


@pytest.mark.parametrize("suite", paper.SUITES)
def test_printed_average_ranks_follow_from_the_medians(suite):
    found = ranks_of(suite).average
    for name, printed in paper.load("ranks")["suites"][suite]["average_rank"].items():
        assert found[name] == pytest.approx(printed, abs=0.0051), name


# Digits to which each suite prints its p-values; a printed 0.0 stands for anything below.
PRINTED_TO = {"basic_1000d": 5e-3, "scalability": 5e-3, "cec2010": 6e-5, "cec2013": 6e-5}


@pytest.mark.parametrize("suite", paper.SUITES)
def test_printed_p_values_follow_from_the_medians(suite):
    found = ranks_of(suite).p_values("MMES")
    values = paper.load("ranks")["suites"][suite]["p_value_bonferroni"]
    printed = {name: p for name, p in values.items() if p is not None}
    assert set(found) == set(printed)
    for name, p in printed.items():
        assert found[name] == pytest.approx(p, abs=PRINTED_TO[suite]), name


@pytest.mark.parametrize(
    ("suite", "rival", "printed", "digits"),
    [
        ("scalability", "SDA-ES", 0.89, 5e-3),
        ("scalability", "Rm-ES", 0.04, 5e-3),
        ("cec2010", "MOS", 0.188, 5e-4),
    ],
)
def test_the_named_examples(suite, rival, printed, digits):
    p_values = ranks_of(suite).p_values("MMES")
    assert p_values[rival] == pytest.approx(printed, abs=digits)


@pytest.mark.parametrize("suite", ["basic_1000d", "scalability", "cec2010"])
def test_printed_ranks_of_every_row_follow_from_the_medians(suite):
    ranked = ranks_of(suite)
    for row, ours in zip(paper.load("ranks")["suites"][suite]["rows"], ranked.ranks, strict=True):
        # Where medians tie the paper prints the smallest or largest rank of the group.
        printed = [row["results"][a]["rank"] for a in ranked.strategies]
        for p, r in zip(printed, ours, strict=True):
            assert abs(p - r) <= (list(ours).count(r) - 1) / 2


def test_cells_and_marks():
    table = paper.table("basic_1000d")
    cell = table.cells["Elli", 1000, "LM-CMA"]
    assert (cell.median, cell.mark, cell.shade) == (1.07e7, Mark.WORSE, "second")
    assert table.cells["RotElli", 1000, "sep-CMA"].median is None
    assert ("f13", 905) in paper.table("cec2013").rows


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="basic_1000d"):
        paper.table("cec2019")
    with pytest.raises(ValueError, match="runtime"):
        paper.load("nothing")


def test_the_clustering_table():
    data = paper.load("ssc")
    rows = {(name, row["beta"]): row for name, rows in data["data_sets"].items() for row in rows}
    assert len(rows) == 18 * 7
    assert data["betas"] == [0.01, 0.005, 0.001, 0.0005, 0.0001, 0.00005, 0.00001]
    assert (rows["colon", 0.01]["MMES"], rows["colon", 0.01]["GSC"]) == (0.533337, 0.614039)
    marks = [row["mark"] for row in rows.values()]
    counts = {mark: marks.count(mark) for mark in set(marks)}
    assert counts == {"mmes_better": 82, "mmes_worse": 28, "no_difference": 16}
