"""The report says what the runs say, in one file that needs nothing else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from mmes.lab.experiments.analysis.charts import Chart, Series
from mmes.lab.experiments.plan import Objective
from mmes.lab.experiments.results.store import Store
from mmes.lab.report import write_report
from mmes.lab.report.page import chart_data
from pretended import make_outcome, make_run


class Anchors(HTMLParser):
    """Collects ids, links within the page, and everything a browser would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if values.get("id"):
            self.ids.append(values["id"])
        reference = values.get("href") or values.get("src") or ""
        if reference.startswith("#"):
            self.links.append(reference[1:])
        elif reference and reference != "data:,":
            self.fetched.append(reference)


def charts_of(text: str) -> dict:
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    return json.loads(data.group(1))["charts"]


def test_a_comparison(comparison_folder):
    path = write_report(comparison_folder)
    assert path == comparison_folder / "report.html"
    text = path.read_text(encoding="utf-8")
    page = Anchors(text)
    assert page.fetched == []
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.links) <= set(page.ids)
    assert sum("runs-" in link for link in page.links) >= 4
    assert "My &lt;comparison&gt;" in text
    assert "20 of 22" in text
    assert "ValueError: &lt;no luck&gt;" in text
    assert "<b>Rm & ES" not in re.sub(r'id="data">.*?</script>', "", text, flags=re.DOTALL)
    assert "●" in text


def test_the_data_survive_hostile_names(comparison_folder):
    charts = charts_of(write_report(comparison_folder).read_text(encoding="utf-8"))
    names = {series["name"] for chart in charts.values() for series in chart["series"]}
    assert "</script><b>Rm & ES" in names
    assert {"MMES", "seed 0"} <= names


def test_no_label_can_end_or_hide_the_data(comparison_folder):
    """Within a script element "<!--<script>" makes a parser wait for a second end tag."""
    store = Store(comparison_folder / "runs")
    objective = Objective("cigar", "<!--<script>")
    store.write(make_run(7, objective=objective), make_outcome(7))
    text = write_report(comparison_folder).read_text(encoding="utf-8")
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert "<" not in data.group(1)
    assert any("<!--<script>" in chart["title"] for chart in charts_of(text).values())


def test_shading_and_marks_are_explained(comparison_folder):
    text = write_report(comparison_folder).read_text(encoding="utf-8")
    assert "Stronger shading: best on the problem; weaker: second best." in text
    assert "significantly better than this column" in text


def test_a_reproduction_has_the_published_numbers_beside_ours(reproduction_folder):
    text = write_report(reproduction_folder).read_text(encoding="utf-8")
    page = Anchors(text)
    assert {"invariance", "basic", "settings"} <= set(page.ids)
    assert set(page.links) <= set(page.ids)
    assert "1.97e5" in text  # the paper's median of MMES on Cigar
    assert "2.00e5" in text  # ours, pretended
    assert "N/A" in text


def test_a_report_can_be_written_elsewhere(comparison_folder, tmp_path):
    assert write_report(comparison_folder, tmp_path / "a" / "b.html").is_file()


def test_a_bare_folder_of_runs_is_enough(comparison_folder):
    (comparison_folder / "laboratory.json").unlink()
    assert write_report(comparison_folder).is_file()


def test_a_single_run(single_folder):
    text = write_report(single_folder).read_text(encoding="utf-8")
    charts = {chart["title"]: chart for chart in charts_of(text).values()}
    assert [s["name"] for s in charts["Convergence"]["series"]] == ["start 1", "start 2"]
    assert charts["Step size"]["y_log"]
    assert len(charts["Best point (2000 of 3000 variables shown)"]["series"][0]["x"]) == 2000
    assert "1.5e-09" in text
    assert "<h1>Run: cigar</h1>" in text


def test_a_single_run_below_zero_shows_the_distance_to_its_end(single_folder):
    (single_folder / "history.csv").write_text("evaluations,best,sigma\n1,5,1\n2,-1,1\n3,-2,1\n")
    charts = charts_of(write_report(single_folder).read_text(encoding="utf-8"))
    gap = next(c for c in charts.values() if c["title"] == "Distance to the final value")
    assert gap["series"][0]["y"] == [7.0, 1.0, None]


def test_a_single_run_without_history_or_point(single_folder):
    (single_folder / "history.csv").unlink()
    (single_folder / "x.npy").unlink()
    assert "no curves" in write_report(single_folder).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("result.json", "{", "is not valid JSON"),
        ("result.json", "[]", "must contain an object"),
        ("history.csv", "evaluations,best\n1,2\n", "has no column 'sigma'"),
        ("history.csv", "evaluations,best,sigma\n1,2,x\n", "not consist of numbers"),
    ],
)
def test_broken_files_are_named(single_folder, name, content, sentence):
    (single_folder / name).write_text(content)
    with pytest.raises(ValueError, match=sentence):
        write_report(single_folder)


def test_folders_without_results_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        write_report(tmp_path / "none")
    with pytest.raises(ValueError, match=r"neither laboratory\.json nor a folder of runs"):
        write_report(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(ValueError, match="contains no finished run yet"):
        write_report(tmp_path)


def test_numbers_that_json_cannot_hold_become_null():
    chart = Chart(
        "c", "C", "x", "y", (Series("a", np.array([1.0, 2.0]), np.array([np.inf, np.nan])),)
    )
    data = chart_data(chart)
    assert data["series"][0]["y"] == [None, None]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
