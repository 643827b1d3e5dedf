"""Make the missing runs of Table S-I on rotated problems, with the rotations on a GPU.

python benchmarks/rotated.py out/rotated.csv --workers 16 --seconds 500
mmes reproduce basic --full --seeds 3 --take-over out/rotated.csv --list --out out/reproduce-full
python tools/reproduction.py --collect out/reproduce-full

With 1000 variables, nine tenths of the time of `mmes reproduce basic --full` on a rotated problem
are products of the population with the rotation matrix. Here a GPU computes them, in double
precision. Strategies, seeds, starts and targets are those of the published protocol; values differ
from those of a CPU by rounding, so that single runs are not the same to the bit. Every finished run
is added to the file at once. Runs in progress at the time limit are lost.
"""

from __future__ import annotations

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.execute import perform
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.formats import read_rows
from mmes.lab.experiments.results.single_runs import SECTION, section_runs_as_csv
from mmes.lab.experiments.sections import SECTIONS, Extent
from mmes.problems.functions import Rotated

DATA = Path(__file__).parent / "data" / "basic.csv"
FULL_MATRIX = "CMA-ES"
"""One run per problem, and only where it ends within minutes."""
SECONDS_PER_EVALUATION = {FULL_MATRIX: 2.0e-4, "LM-MA": 3.5e-5, "LM-CMA": 2.8e-5}
"""About what was seen on 16 cores with an H200; the others take 2e-5."""


def missing(seeds: int, known: set[str], seconds: float) -> list[Trial]:
    """Return the runs that the paper solved and that are not known, the longest first."""
    published = paper.table("basic_1000d").cells
    found: list[tuple[float, Trial]] = []
    for run in SECTIONS["basic"].runs(Extent.FULL):
        problem, _, strategy = run.cell
        cell = published.get(run.cell)
        if not problem.startswith("Rot") or cell is None or not cell.median or run.key in known:
            continue
        cost = cell.median * SECONDS_PER_EVALUATION.get(strategy, 2.0e-5)
        if cost < seconds and run.seed <= (1 if strategy == FULL_MATRIX else seeds):
            found.append((cost, run))
    return [run for _, run in sorted(found, key=lambda item: -item[0])]


def rotate_on(device: str) -> None:
    """Let this process compute rotations on a device."""
    import torch

    matrices: dict[tuple[int, int], torch.Tensor] = {}

    def rotated(problem: Rotated, x: np.ndarray) -> np.ndarray:
        which = problem.dimension, problem.seed
        if which not in matrices:
            matrices[which] = torch.tensor(problem.matrix.T.copy(), device=device)
        turned = torch.tensor(x, device=device) @ matrices[which]
        return problem.function(turned.cpu().numpy())

    torch.set_num_threads(1)
    Rotated.__call__ = rotated


def main() -> None:
    """Make the runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="CSV file to which finished runs are added")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--seconds", type=float, default=500.0, help="time limit")
    parser.add_argument("--seeds", type=int, default=3, help="runs per cell")
    parser.add_argument("--problem", help="only this problem, such as RotElli")
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    files = [file for file in (DATA, asked.out) if file.exists()]
    known = {row["key"] for file in files for row in read_rows(file, SECTION)}
    runs = missing(asked.seeds, known, asked.seconds)
    runs = [run for run in runs if asked.problem in (None, run.cell[0])]
    print(f"{len(runs)} runs", flush=True)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(asked.workers, context, rotate_on, (asked.device,))
    waiting = {pool.submit(perform, run): run for run in runs}
    try:
        for future in as_completed(waiting, timeout=asked.seconds):
            run, result = waiting[future], future.result()
            lines = section_runs_as_csv([run], {run.key: result}).splitlines(keepends=True)
            with asked.out.open("a", encoding="utf-8", newline="") as file:
                file.writelines(lines if file.tell() == 0 else lines[1:])
            print(f"{run}: {result.evaluations}, {result.seconds:.0f} s", flush=True)
    except TimeoutError:
        print("the time is up", flush=True)
    for process in list(multiprocessing.active_children()):
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()
