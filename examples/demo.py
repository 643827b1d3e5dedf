"""The demo: three problems of 1000 variables, minimised to 1e-8, beside the paper's figures.

    python examples/demo.py [folder]

writes convergence.png into the folder (out/demo by default).
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import mmes
from mmes import problems
from mmes.lab.experiments.analysis import paper

DIMENSION, TARGET, SEED = 1000, 1e-8, 1
PROBLEMS = {"Cigar": "cigar", "DiffPow": "different_powers", "Discus": "discus"}
RIVALS = ("LM-MA", "LM-CMA", "Rm-ES", "SDA-ES")


@contextmanager
def progress_display():
    """Yield a function that shows progress: a live line with rich, plain dots without."""
    try:
        from rich.live import Live
    except ImportError:
        yield lambda text: None
        return
    with Live(refresh_per_second=8, transient=True) as live:
        yield lambda text: live.update(text)


def minimise(name: str, show) -> mmes.Result:
    problem = problems.get(PROBLEMS[name], dimension=DIMENSION)
    x0 = np.random.default_rng(SEED).uniform(-5, 5, DIMENSION)

    def watch(p: mmes.Progress) -> None:
        if p.generation % 50 == 0:
            rate = p.evaluations / max(p.elapsed, 1e-9)
            show(
                f"{name:<8} {p.evaluations:>9,} evaluations   best {p.best_value:9.2e}   "
                f"sigma {p.sigma:8.1e}   {rate:,.0f} evaluations/s"
            )

    return mmes.minimize(
        problem, x0, 3.0, vectorized=True, target=TARGET, seed=SEED, callback=watch
    )


def draw(results: dict[str, mmes.Result], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    published = paper.table("basic_1000d").cells
    for name, result in results.items():
        (line,) = axes.semilogy(
            result.history["evaluations"], result.history["best"], label=f"{name}, this run"
        )
        median = published[name, DIMENSION, "MMES"].median
        axes.plot([median], [TARGET], marker="D", color=line.get_color(), markersize=7,
                  linestyle="none", label=f"{name}, paper")  # fmt: skip
    axes.axhline(TARGET, color="0.7", linewidth=0.8, zorder=0)
    axes.set(
        xlabel="evaluations",
        ylabel="best value",
        title=f"{DIMENSION} variables: AdaptiveMMES (lines), the paper's "
        "medians of MMES (diamonds)",
    )
    axes.grid(color="0.93")
    axes.legend(frameon=False, ncols=3, fontsize=9)
    figure.savefig(path, dpi=130)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out/demo")
    folder.mkdir(parents=True, exist_ok=True)
    with progress_display() as show:
        results = {name: minimise(name, show) for name in PROBLEMS}

    published = paper.table("basic_1000d").cells
    columns = ["ours", "paper MMES", *RIVALS]
    print(
        f"Evaluations to {TARGET:g}, n = {DIMENSION}: one run of AdaptiveMMES, the default; "
        "the paper's medians of 20\n"
    )
    print(f"{'':<9}" + "".join(f"{column:>12}" for column in columns) + f"{'us/eval':>10}")
    for name, result in results.items():
        figures = [float(result.nfev)]
        figures += [published[name, DIMENSION, a].median or np.nan for a in ("MMES", *RIVALS)]
        cost = 1e6 * result.time / result.nfev
        print(f"{name:<9}" + "".join(f"{v:>12.2e}" for v in figures) + f"{cost:>10.1f}")
        if not result.success:
            raise SystemExit(f"{name} did not reach {TARGET:g}: {result.message}")
    kernel = results["Cigar"].kernel
    print(
        f"\nTime includes the objective; {kernel} kernel. Rivals' columns are the paper's figures."
    )
    path = folder / "convergence.png"
    draw(results, path)
    print(f"Convergence plot: {path}")


if __name__ == "__main__":
    main()
