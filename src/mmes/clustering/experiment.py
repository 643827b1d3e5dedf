"""The paper's clustering experiment: data sets x betas x seeds, ours beside the paper's table.

``python -m mmes.clustering.experiment --help`` says how to run it. Every finished run is one line
of a JSON-lines file; a run that is already there is not repeated, so that an interrupted experiment
continues where it stopped. The functions take and return plain records, and can be driven by
another program as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from mmes.clustering.competitors import smoothed_trust_region, subgradient_trust_region
from mmes.clustering.graphs import Graph, dataset_names, graph_from_mat, load_graph
from mmes.clustering.published import PaperCell, paper_betas, paper_table
from mmes.clustering.solve import PAPER_PROTOCOL, Protocol, sparse_basis
from mmes.manifolds import Grassmann

METHODS = ("mmes", "gsc", "smoothed")


@dataclass(frozen=True)
class Task:
    """One run: which data set, which beta, which method, which seed, and its settings.

    Two tasks with the same `key` give the same result.
    """

    data_set: str
    beta: float
    method: str
    seed: int
    protocol: Protocol = PAPER_PROTOCOL
    mat_file: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies the run in a store."""
        settings = tuple(asdict(self.protocol).values()) if self.method == "mmes" else ()
        return (self.data_set, self.beta, self.method, self.seed, *settings)


@dataclass(frozen=True)
class Run:
    """A finished task: its best objective value, evaluations and seconds."""

    data_set: str
    beta: float
    method: str
    seed: int
    protocol: Protocol
    value: float
    evaluations: int
    seconds: float

    @property
    def key(self) -> tuple[object, ...]:
        """The key of the task."""
        return Task(self.data_set, self.beta, self.method, self.seed, self.protocol).key


def run_task(task: Task) -> Run:
    """Do one run. Start points depend on the seed alone, so all methods start alike."""
    graph = _graph(task.data_set, task.mat_file)
    laplacian = graph.laplacian()
    began = time.perf_counter()
    if task.method == "mmes":
        solution = sparse_basis(
            laplacian, graph.n_clusters, task.beta, seed=task.seed, protocol=task.protocol
        )
        value, evaluations = solution.value, solution.evaluations
    else:
        solver = {"gsc": subgradient_trust_region, "smoothed": smoothed_trust_region}[task.method]
        manifold = Grassmann(graph.n_samples, graph.n_clusters)
        start = manifold.random_point(np.random.default_rng(task.seed))
        result = solver(laplacian, task.beta, start)
        value, evaluations = result.fun, result.nfev
    seconds = time.perf_counter() - began
    return Run(
        task.data_set,
        task.beta,
        task.method,
        task.seed,
        task.protocol,
        value,
        evaluations,
        round(seconds, 3),
    )


@lru_cache(maxsize=4)
def _graph(name: str, mat_file: str | None) -> Graph:
    return load_graph(name) if mat_file is None else graph_from_mat(mat_file, name)


class Store:
    """Finished runs in a file of one JSON object a line, appended as they end.

    Parameters
    ----------
    path : path
        The file; it is made when the first run is added.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def runs(self) -> list[Run]:
        """Return all runs in the file. A last line cut off by a crash is left out."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        runs = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
                runs.append(Run(**{**fields, "protocol": Protocol(**fields["protocol"])}))
            except (ValueError, TypeError, KeyError):
                if number == len(lines):
                    continue
                raise ValueError(
                    f"{self.path}, line {number}: not a run of this experiment"
                ) from None
        return runs

    def add(self, run: Run) -> None:
        """Append a run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            self._drop_torn_line(file)
            file.write((json.dumps(asdict(run)) + "\n").encode())

    @staticmethod
    def _drop_torn_line(file) -> None:
        file.seek(0)
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)


def run_all(tasks: Iterable[Task], store: Store, jobs: int = 1) -> Iterator[Run]:
    """Do the tasks that are not in the store yet, add each to it and yield it as it ends.

    Parameters
    ----------
    tasks : iterable of Task
        What to do, in this order.
    store : Store
        Where finished runs are kept.
    jobs : int, default 1
        Processes to use.
    """
    done = {run.key for run in store.runs()}
    pending = [task for task in tasks if task.key not in done]
    if jobs == 1:
        for task in pending:
            run = run_task(task)
            store.add(run)
            yield run
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_task, task) for task in pending]):
            run = future.result()
            store.add(run)
            yield run


@dataclass(frozen=True)
class Row:
    """One line of the table: a data set and a beta, all seeds together.

    Attributes
    ----------
    values : dict
        Objective values by method.
    evaluations : float
        Median evaluations of MMES.
    paper : PaperCell or None
        What the paper prints.
    """

    data_set: str
    beta: float
    values: dict[str, list[float]]
    evaluations: float
    paper: PaperCell | None

    def median(self, method: str) -> float:
        """Return the median over the seeds, or NaN where the method did not run."""
        return float(np.median(self.values[method])) if self.values.get(method) else float("nan")

    @property
    def deviation(self) -> float:
        """Relative deviation of our MMES median from the paper's."""
        return self.median("mmes") / self.paper.mmes - 1.0 if self.paper else float("nan")

    @property
    def mark(self) -> str:
        """How MMES compares with GSC in our runs: rank-sum test at the level 0.05, two-sided."""
        ours, theirs = self.values.get("mmes", []), self.values.get("gsc", [])
        if len(ours) < 4 or len(theirs) < 4:  # fewer can never be significant
            return ""
        from scipy.stats import ranksums

        if ranksums(ours, theirs).pvalue >= 0.05:
            return "no_difference"
        return "mmes_better" if np.median(ours) < np.median(theirs) else "mmes_worse"


def summarise(runs: Iterable[Run]) -> list[Row]:
    """Collect runs into the rows of the table, in the paper's order, other data sets last."""
    cells: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.data_set, run.beta), []).append(run)
    paper = paper_table()
    names = list(dict.fromkeys(name for name, _ in paper))
    last = len(names)

    def place(cell: tuple[str, float]) -> tuple[int, str, float]:
        name, beta = cell
        return (names.index(name) if name in names else last, name, -beta)

    rows = []
    for name, beta in sorted(cells, key=place):
        values: dict[str, list[float]] = {method: [] for method in METHODS}
        for run in cells[name, beta]:
            values[run.method].append(run.value)
        effort = [run.evaluations for run in cells[name, beta] if run.method == "mmes"]
        evaluations = float(np.median(effort)) if effort else float("nan")
        rows.append(Row(name, beta, values, evaluations, paper.get((name, beta))))
    return rows


_SIGNS = {"mmes_better": "+", "mmes_worse": "-", "no_difference": "=", "": "."}
_HEADINGS = (
    "set",
    "beta",
    "n",
    "MMES median [min, max]",
    "paper MMES",
    "deviation",
    "GSC median",
    "paper GSC",
    "sign, paper's",
    "smoothed best",
    "evaluations",
)


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the table in Markdown: our medians beside the paper's."""
    lines = [_HEADINGS, ("---",) * len(_HEADINGS), *(_cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    ours, smoothed = row.values["mmes"], row.values["smoothed"]
    spread = f" [{min(ours):.4g}, {max(ours):.4g}]" if ours and _is_wide(ours) else ""
    paper = row.paper
    return (
        row.data_set,
        f"{row.beta:g}",
        str(len(ours)),
        _number(row.median("mmes")) + spread,
        _number(paper.mmes) if paper else "",
        _deviation(row.deviation),
        _number(row.median("gsc")),
        _number(paper.gsc) if paper else "",
        f"{_SIGNS[row.mark]} {_SIGNS[paper.mark if paper else '']}",
        _number(min(smoothed)) if smoothed else "",
        "" if np.isnan(row.evaluations) else f"{row.evaluations / 1000:.0f}k",
    )


def _is_wide(values: list[float]) -> bool:
    return max(values) - min(values) > 1e-3 * abs(min(values))


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"


def _deviation(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{100 * value:+.2f} %" if abs(value) >= 1e-3 else f"{value:+.1e}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        store, tasks = Store(given.store), _tasks(given)
        for run in run_all([] if given.table else tasks, store, given.jobs):
            print(
                f"{run.data_set} {run.beta:g} {run.method} seed {run.seed}: {run.value:.6g} "
                f"({run.evaluations} evaluations, {run.seconds:.1f} s)",
                file=sys.stderr,
                flush=True,
            )
        settings = tasks[0].protocol
        wanted = {(task.data_set, task.beta, task.method) for task in tasks}
        print(
            as_markdown(
                summarise(
                    run
                    for run in store.runs()
                    if (run.data_set, run.beta, run.method) in wanted
                    and (run.method != "mmes" or run.protocol == settings)
                )
            )
        )
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted; finished runs are in {given.store}", file=sys.stderr)
        return 130
    return 0


def _tasks(given: argparse.Namespace) -> list[Task]:
    """Return the runs that the command line asks for, one seed of every cell at a time."""
    files = dict(_named_file(text) for text in given.mat)
    known = [*dataset_names(), *files]
    for name in given.sets or ():
        if name not in known:
            raise ValueError(
                f"there is no data set {name!r}; the package has {', '.join(dataset_names())}, "
                "others come with --mat NAME=FILE"
            )
    if given.runs < 1 or given.jobs < 1:
        raise ValueError("--runs and --jobs must be at least 1")
    protocol = Protocol(
        init=given.init,
        max_evaluations=given.max_evaluations,
        restarts=_restarts(given.restarts),
        min_sigma=given.min_sigma,
        mirrored=not given.unmirrored,
    )
    sets: list[str] = given.sets or known
    seeds = range(given.first_seed, given.first_seed + given.runs)
    return [
        Task(name, beta, method, seed, protocol, files.get(name))
        for seed in seeds
        for name in sets
        for beta, method in product(given.betas, given.methods)
    ]


def _restarts(text: str) -> int | str:
    if text == "budget":
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--restarts takes a number or 'budget', not {text!r}") from None


def _named_file(text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise ValueError(f"--mat takes NAME=FILE, not {text!r}")
    if not Path(path).is_file():
        raise ValueError(f"--mat {name}: there is no file {path}")
    return name, path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mmes.clustering.experiment",
        description="Sparse spectral clustering by MMES and its white-box rivals, beside the "
        "paper's table. Finished runs are kept in a file and not repeated.",
    )
    parser.add_argument("store", help="file of finished runs (JSON lines), made if needed")
    parser.add_argument(
        "--table", action="store_true", help="run nothing, print the table of what the file holds"
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help="data sets (default: all)")
    parser.add_argument("--betas", nargs="+", type=float, metavar="BETA", default=paper_betas())
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=["mmes", "gsc"], help="default: mmes gsc"
    )
    parser.add_argument("--runs", type=int, default=20, help="seeds of each cell (default 20)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument(
        "--mat", action="append", default=[], metavar="NAME=FILE", help="another data set"
    )
    parser.add_argument("--init", choices=["random", "spectral"], default=Protocol.init)
    parser.add_argument("--max-evaluations", type=int, default=Protocol.max_evaluations)
    parser.add_argument("--min-sigma", type=float, default=Protocol.min_sigma)
    parser.add_argument("--unmirrored", action="store_true", help="no pairs of opposite steps")
    parser.add_argument(
        "--restarts", default=str(Protocol.restarts), help="a number, or 'budget' to spend it all"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
