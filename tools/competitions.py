"""Write the tables of docs/competitions.md from the single runs in benchmarks/data.

python tools/competitions.py            # renew the page
python tools/competitions.py --check    # 1 if the page is not up to date
python tools/competitions.py --collect DIR    # add the runs of `mmes compete --out DIR` first
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from marked import grid, write_or_check

from mmes.lab.experiments.analysis.standings import standings, value_after
from mmes.lab.experiments.analysis.tables import Table, number
from mmes.lab.experiments.competition import finished_runs
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.formats import to_markdown
from mmes.lab.experiments.results.single_runs import runs_as_csv, take_over
from mmes.lab.experiments.results.store import Store, TrialResult
from mmes.problems.suite import CHECKPOINTS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "competitions.md"
DATA = ROOT / "benchmarks" / "data"
SUITES = ("lsgo2013", "lsgo2010")
BUDGET = CHECKPOINTS[-1]
OWN = "AdaptiveMMES"

Runs = Sequence[Trial]
Results = Mapping[str, TrialResult]

# D. Molina, A. LaTorre, F. Herrera, IEEE CEC 2018: means of their runs.
SHADE_ILS_MEANS = {
    "f1": 2.7e-24, "f2": 1.0e3, "f3": 20.1, "f4": 1.48e8, "f5": 1.39e6,
    "f6": 1.02e6, "f7": 74.0, "f8": 3.2e11, "f9": 1.64e8, "f10": 9.18e7,
    "f11": 5.1e5, "f12": 62.0, "f13": 1.0e5, "f14": 5.8e6, "f15": 6.3e5,
}  # fmt: skip


FACTOR = 1.5
"""Medians within this factor of the published ones agree."""

ACKLEY = "the published values are those of Ackley's function without the suite's transformations"
COUNTED = "we count evaluations of a group in its new context; the publication probably did not"
CYCLES = "perhaps the cycle length, which is not known for the published medians"
SIZES = "the first group sizes determine a run"
STEPS = "changes in steps of about 20, one for each group that is stuck"
REASONS = {
    **{("lsgo2013", name, f): ACKLEY for name in ("MMES", "MOS") for f in ("f3", "f6", "f10")},
    **{("lsgo2013", "DECC-DG", f): COUNTED for f in ("f4", "f7", "f11", "f14")},
    **{("lsgo2013", "DECC-G", f): CYCLES for f in ("f4", "f8", "f14", "f15")},
    ("lsgo2013", "CCPSO2", "f1"): SIZES,
    ("lsgo2010", "MMES", "f8"): "restarts on a plateau that it would leave later; see below",
    **{("lsgo2010", "MMES", f): STEPS for f in ("f11", "f16")},
    ("lsgo2010", "MMES", "f18"): "varies severalfold between runs",
}


def by_function(runs: Runs) -> dict[str, dict[str, list[Trial]]]:
    """Return the runs of every function and strategy."""
    found: dict[str, dict[str, list[Trial]]] = {}
    for run in runs:
        found.setdefault(run.objective.label, {}).setdefault(run.strategy.label, []).append(run)
    return found


def effort(runs: Runs, results: Results) -> str:
    """Return how many runs each strategy has, and what they cost."""
    rows = []
    functions = by_function(runs)
    for label in dict.fromkeys(run.strategy.label for run in runs):
        counts = [len(cells.get(label, [])) for cells in functions.values()]
        seconds = [results[run.key].cpu_seconds for run in runs if run.strategy.label == label]
        least, most = min(counts), max(counts)
        per_function = str(least) if least == most else f"{least} to {most}"
        rows.append([label, per_function, str(sum(counts)), f"{statistics.median(seconds):.0f}"])
    head = ["strategy", "runs per function", "runs", "median processor time of a run, s"]
    return grid(head, rows)


def own_table(suite: str, runs: Runs, results: Results) -> str:
    """Return what AdaptiveMMES reached: median, range, and medians at the earlier checkpoints."""
    rows = []
    for function, cells in by_function(runs).items():
        found = [results[run.key] for run in cells.get(OWN, [])]
        if not found:
            continue
        last = sorted(value_after(result, BUDGET) for result in found)
        early = [
            number(statistics.median(value_after(result, mark) for result in found))
            for mark in CHECKPOINTS[:-1]
        ]
        row = [function, number(statistics.median(last))]
        row += [f"{number(last[0])} .. {number(last[-1])}", *early]
        if suite == "lsgo2013":
            row.append(number(SHADE_ILS_MEANS[function]))
        rows.append(row)
    head = ["f", "median", "range", "median at 1.2e5", "at 6e5"]
    return grid(head + (["SHADE-ILS, published mean"] if suite == "lsgo2013" else []), rows)


def stored(suite: str) -> tuple[list[Trial], dict[str, TrialResult]]:
    """Return the single runs of benchmarks/data."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        take_over(DATA / f"{suite}.csv", store)
        return finished_runs(store, suite, BUDGET)


def collect(folder: Path) -> None:
    """Add the runs of a competition's folder to the single runs of benchmarks/data."""
    for suite in SUITES:
        with tempfile.TemporaryDirectory() as merged:
            store = Store(Path(merged))
            take_over(DATA / f"{suite}.csv", store)
            known = store.finished()
            runs, results = finished_runs(Store(folder / "runs"), suite, BUDGET)
            for run in runs:
                if run.key not in known:
                    store.write(run, results[run.key])
            text = runs_as_csv(*finished_runs(store, suite, BUDGET), CHECKPOINTS)
        (DATA / f"{suite}.csv").write_text(text, encoding="utf-8")


def tables_of(suite: str) -> dict[str, str]:
    """Return every table of a suite by its mark in the page."""
    runs, results = stored(suite)
    found = {"runs": effort(runs, results), "own": own_table(suite, runs, results)}
    everyone = tables_by_name(suite, runs, results)
    for name in (f"medians-{BUDGET}", "quoted-ratios"):
        if name in everyone:
            found[name] = body(to_markdown(everyone[name]))
    found["agreement"] = agreement(suite, runs, results, everyone["quoted-ratios"])
    complete = run_on_all(runs)
    found["points"] = body(
        to_markdown(
            tables_by_name(suite, [run for run in runs if run.strategy.label in complete], results)[
                "points"
            ]
        )
    )
    alone = tables_by_name(suite, [run for run in runs if run.strategy.label == OWN], results)
    found["rank"] = summary(alone)
    return {f"{suite} {name}": table for name, table in found.items()}


def agreement(suite: str, runs: Runs, results: Results, ratios: Table) -> str:
    """Return how many medians agree with the published ones, and a table of those that differ."""
    functions = by_function(runs)
    found = [
        (line.label, name, cell.ours)
        for line in ratios.lines
        for name, cell in line.cells.items()
        if cell.ours is not None
    ]
    different = [entry for entry in found if not 1 / FACTOR <= entry[2] <= FACTOR]
    parts = []
    for name in ratios.columns:
        mine = [ratio for _, label, ratio in found if label == name]
        agreed = sum(1 / FACTOR <= ratio <= FACTOR for ratio in mine)
        parts.append(f"{name} {agreed} of {len(mine)}")
    words = (
        f"**{len(found) - len(different)} of {len(found)} medians agree** with the published ones "
        f"within a factor of {FACTOR:g}: {', '.join(parts)}. The others:"
    )
    rows = []
    for function, name, ratio in different:
        values = sorted(value_after(results[run.key], BUDGET) for run in functions[function][name])
        kind = "better" if ratio < 1 else "worse"
        unknown = "not explained" if len(values) > 1 else "not explained; a single run"
        why = REASONS.get((suite, name, function), unknown)
        spread = number(values[0])
        if len(values) > 1:
            spread += f" .. {number(values[-1])}"
        rows.append([function, name, number(ratio), kind, str(len(values)), spread, why])
    head = ["f", "strategy", "ours / published", "", "runs", "our runs", "why"]
    return f"{words}\n\n{grid(head, rows)}"


def tables_by_name(suite: str, runs: Runs, results: Results) -> dict[str, Table]:
    """Return the tables of a competition among some runs."""
    return {table.name: table for table in standings(suite, runs, results, CHECKPOINTS).tables}


def run_on_all(runs: Runs) -> set[str]:
    """Return the strategies that were run on every function."""
    functions = by_function(runs)
    labels = {run.strategy.label for run in runs}
    return {label for label in labels if all(label in cells for cells in functions.values())}


def summary(alone: Mapping[str, Table]) -> str:
    """Return average rank and points of AdaptiveMMES among the medians that the paper prints."""
    ranks = next(
        cells
        for words, cells in alone[f"medians-{BUDGET}"].footers
        if OWN in words and OWN in cells
    )
    ((_, totals),) = alone["points-quoted"].footers
    points = {name.removesuffix(" (quoted)"): total for name, total in totals.items()}
    names = sorted(ranks, key=lambda name: float(ranks[name]))
    return grid(
        ["", *names],
        [
            ["average rank", *(ranks[name] for name in names)],
            ["points", *(points[name] for name in names)],
        ],
    )


def body(markdown: str) -> str:
    """Return a table without its heading, which the page has."""
    return markdown.split("\n", 2)[2].strip()


def texts() -> dict[str, str]:
    """Return every table of the page by its mark."""
    return {name: text for suite in SUITES for name, text in tables_of(suite).items()}


if __name__ == "__main__":
    if "--collect" in sys.argv:
        collect(Path(sys.argv[sys.argv.index("--collect") + 1]))
    sys.exit(write_or_check(PAGE, texts))
