"""Tables say what the runs say: medians, marks, shading, ranks, and the published numbers."""

from __future__ import annotations

import csv
import io
import math
from operator import attrgetter

import pytest

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.paper import Published
from mmes.lab.experiments.analysis.statistics import Mark
from mmes.lab.experiments.analysis.tables import (
    Cell,
    Comparison,
    compare,
    number,
    shades,
    wins,
)
from mmes.lab.experiments.plan import Objective, Strategy
from mmes.lab.experiments.results import formats
from pretended import make_outcome, make_run

A, B = Strategy("mmes", "MMES"), Strategy("lm-ma", "LM-MA")
CIGAR, DISCUS = Objective("cigar", "Cigar"), Objective("discus", "Discus")


def comparison(
    cells: dict[tuple[Strategy, Objective], list[float]], measure=attrgetter("cost")
) -> Comparison:
    """Make a comparison of runs that took so many evaluations; infinity is a failure."""
    runs, outcomes = [], {}
    for (strategy, objective), values in cells.items():
        for seed, value in enumerate(values):
            run = make_run(seed, strategy=strategy, objective=objective)
            failed = math.isinf(value)
            runs.append(run)
            outcomes[run.key] = make_outcome(
                seed, evaluations=1000 if failed else int(value), best=1.0 if failed else 1e-9
            )
    return Comparison(tuple(runs), outcomes, measure)


@pytest.fixture
def data():
    return comparison(
        {
            (A, CIGAR): [100, 110, 120, 130, 140],
            (B, CIGAR): [200, 210, 220, 230, 240],
            (A, DISCUS): [300, 310, math.inf, math.inf, math.inf],
            (B, DISCUS): [100, 101, 102, 103, 104],
        }
    )


PUBLISHED = {
    ("Cigar", 10, "MMES"): Published(125.0, None, "best"),
    ("Cigar", 10, "LM-MA"): Published(250.0, Mark.BETTER, "second"),
    ("Discus", 10, "MMES"): Published(None, None, None),
}


def test_cells_by_hand(data):
    table = compare(data, ("t", "T", "q"), published=PUBLISHED)
    cigar, discus = table.lines
    assert cigar.label == "Cigar"
    own, rival = cigar.cells["MMES"], cigar.cells["LM-MA"]
    assert (own.ours, own.successes, own.shade, own.mark) == (120.0, 5, "best", None)
    assert (rival.ours, rival.mark, rival.shade) == (220.0, Mark.BETTER, "second")
    assert (rival.paper, rival.paper_mark, rival.paper_shade) == (250.0, Mark.BETTER, "second")
    assert own.ratio == pytest.approx(120 / 125)
    lost = discus.cells["MMES"]
    assert (lost.ours, lost.successes, lost.shade) == (math.inf, 2, None)
    assert lost.not_applicable
    assert discus.cells["LM-MA"].mark is Mark.WORSE
    assert wins(table.lines, "LM-MA", published=False) == "1/1/0"


def test_footers_by_hand(data):
    table = compare(data, ("t", "T", "q"))
    footers = dict(table.footers)
    assert footers["better/worse/same"]["LM-MA"] == "1/1/0"
    assert footers["average rank (2 problems)"] == {"MMES": "1.50", "LM-MA": "1.50"}
    assert footers["p, Bonferroni"] == {"LM-MA": "1"}


def test_beside_published_numbers_footers_say_whose_they_are(data):
    footers = dict(compare(data, ("t", "T", "q"), published=PUBLISHED).footers)
    assert footers["better/worse/same (ours)"]["LM-MA"] == "1/1/0"
    assert footers["better/worse/same (paper)"]["LM-MA"] == "1/0/0"


def test_a_table_explains_only_the_marks_it_has():
    plain = comparison({(A, CIGAR): [1, 2, 3]})
    printed = {("Cigar", 10, "MMES"): Published(7.0, None, "best")}
    text = formats.to_text(compare(plain, ("t", "T", "q"), published=printed))
    assert "7" in text
    assert "best of the row" not in text
    assert "significantly" not in text


def test_too_few_runs_are_not_tested():
    few = comparison({(A, CIGAR): [1, 2, 3], (B, CIGAR): [10, 20, 30]})
    assert compare(few, ("t", "T", "q")).lines[0].cells["LM-MA"].mark is None


def test_rows_that_were_not_run_show_the_published_number(data):
    table = compare(
        data,
        ("t", "T", "q"),
        published={("Elli", 10, "MMES"): Published(7.0, None, None)},
        places=[("Elli", 10), ("Cigar", 10)],
    )
    cell = table.lines[0].cells["MMES"]
    assert (cell.ours, cell.paper, cell.keys) == (None, 7.0, ())


def test_the_papers_own_table_comes_back_whole():
    published = paper.table("cec2010")
    empty = Comparison((), {}, attrgetter("best"))
    table = compare(
        empty,
        ("t", "T", "q"),
        published=published.cells,
        columns=published.algorithms,
        places=published.rows,
    )
    footers = dict(table.footers)
    assert footers["average rank (paper, 20 rows)"]["MOS"] == "3.25"
    assert footers["p, Bonferroni (paper)"]["MOS"] == "0.188"
    assert footers["better/worse/same (paper)"]["DECC-G"] == "18/1/1"


def test_ours_among_published_medians():
    """One of our columns against rivals that exist as medians only."""
    ours = comparison({(A, CIGAR): [10] * 5, (A, DISCUS): [10] * 5})
    published = {
        ("Cigar", 10, "MOS"): Published(5.0, None, None),
        ("Discus", 10, "MOS"): Published(50.0, None, None),
    }
    table = compare(ours, ("t", "T", "q"), published=published, columns=["MOS", "MMES"])
    footers = dict(table.footers)
    assert footers["average rank (our MMES among the published, 2 rows)"] == {
        "MOS": "1.50",
        "MMES": "1.50",
    }
    assert footers["p, signed-rank of medians (our MMES)"] == {"MOS": "1"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.97e5, "1.97e5"),
        (123.4, "123"),
        (21.3, "21.3"),
        (0.5, "0.500"),
        (1.6e-6, "1.60e-6"),
        (0.0, "0"),
        (-12.0, "-12"),
        (math.inf, "fail"),
        (math.nan, "NaN"),
        (None, "–"),
        (999.6, "1.00e3"),
        (-999.6, "-1.00e3"),
        (0.9996, "1"),
        (999.4, "999"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_shades():
    found = shades({"a": 3.0, "b": 1.0, "c": 1.0, "d": math.inf, "e": None, "f": 9.0})
    assert found == {"b": "best", "c": "best", "a": "second"}
    assert shades({"a": 1.0, "b": None}) == {}


def test_text_is_aligned_and_complete(data):
    text = formats.to_text(compare(data, ("t", "T", "q"), published=PUBLISHED))
    lines = text.splitlines()
    assert "120* / 125" in text
    assert "220●+ / 250●" in text
    assert "*: best of the row; +: second best." in text
    assert "● MMES is significantly better than this column" in text
    assert "fail (2/5) / N/A" in text
    assert len({len(line.rstrip()) for line in lines if line.startswith("-")}) == 1


def test_csv_holds_every_number_in_full(data):
    table = compare(data, ("t", "T", "q"), published=PUBLISHED)
    rows = list(csv.DictReader(io.StringIO(formats.to_csv(table))))
    assert len(rows) == 4
    assert rows[0]["value"] == "120.0"
    assert rows[0]["ratio"] == "0.96"
    assert rows[1]["mark"] == "better"
    assert rows[1]["published_shade"] == "second"
    assert len(rows[0]["keys"].split()) == 5


def test_markdown(data):
    text = formats.to_markdown(compare(data, ("t", "T", "q")))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[2] == "| Cigar | **120** | *220●* |"
    assert len({row.count("|") for row in rows}) == 1


def test_latex_shades_and_escapes(data):
    table = compare(data, ("t", "50% _better_", "q"), published=PUBLISHED)
    text = formats.to_latex(table)
    assert r"\cellcolor[gray]{0.75}120" in text
    assert r"220$^\bullet$" in text
    assert r"50\% \_better\_" in text
    assert text.count(r"\begin{tabular}{lrrrr}") == 1
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    widths = {line.count(" & ") + line.count("multicolumn") for line in body}
    assert widths == {4}


def test_latex_writes_powers_as_mathematics():
    cell = Cell(ours=1.97e5)
    assert formats.latex_number(cell.ours, None, None) == r"$1.97\mathrm{e}{5}$"


def test_every_format_is_written(tmp_path, data):
    files = formats.write_table(compare(data, ("t", "T", "q")), tmp_path)
    assert sorted(f.suffix for f in files) == [".csv", ".md", ".tex", ".txt"]
    assert all(f.stat().st_size > 0 for f in files)
