"""Makes the figures and tables of the pages for users: python tools/pages.py [NAME ...] [--check].

Figures go to docs/figures as SVG (`sigma0`, `bounds`, `noise`, `step_size`, `networks`; matplotlib,
a minute or two each); `reasons` writes the table of docs/ends.md. With --check nothing is written:
the exit status tells whether the table is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mmes
from mmes.base.reasons import StopReason
from mmes.problems import get
from mmes.spaces.boxes import Start
from mmes.spaces.boxes.smooth import Smooth

DOCS = Path(__file__).resolve().parent.parent / "docs"
COLORS = ("#1b6ca8", "#d1495b", "#66a182", "#8d6a9f")

# --- Why did it stop? -----------------------------------------------------------------------------

ADVICE = {
    StopReason.TARGET_REACHED: "Nothing: this is what you asked for.",
    StopReason.CONVERGED_X: (
        "Use the result. If there may be several optima, add `restarts=`. If it ran too long, "
        "raise `xtol`."
    ),
    StopReason.CONVERGED_F: (
        "Use the result. If it stopped too early, subtract a constant from f: values far from 0 "
        "hide small differences. If it ran too long, set `ftol`."
    ),
    StopReason.FLAT: "Raise `sigma0`, start elsewhere, or check whether f depends on x at all.",
    StopReason.STAGNATED: (
        "Look at `history` and `r.failed`: if more than 30 % of evaluations fail, no run counts as "
        "converged. Add `restarts=`, or a larger `population_size`. If f has penalties, give "
        "[`constraints=`](constraints.md) instead."
    ),
    StopReason.NOISY: "Allow more evaluations, or average several in f: "
    "[noisy objectives](noise.md).",
    StopReason.SIGMA_TOO_SMALL: "You set `sigma_min`, or the steps became too small for float64.",
    StopReason.SIGMA_TOO_LARGE: "Set bounds: f decreases without limit in some direction.",
    StopReason.UNBOUNDED: "f returned -inf: return NaN where f is not defined.",
    StopReason.ALL_FAILED: "Start at a point where f is finite; see `r.failed`.",
    StopReason.MAX_EVALUATIONS: (
        "Resume from the [checkpoint](checkpoints.md) with a larger budget."
    ),
    StopReason.MAX_GENERATIONS: "As for evaluations.",
    StopReason.TIME_LIMIT: "As for evaluations.",
    StopReason.CALLBACK: "Your callback returned a true value or raised `StopIteration`.",
    StopReason.REQUESTED: "`run.request_stop()` was called.",
    StopReason.INTERRUPTED: (
        "Ctrl-C or SIGTERM. If there is a checkpoint, `mmes.resume` continues the run."
    ),
    StopReason.INFEASIBLE: "Look at the violations; start at a feasible point, or add `restarts=`.",
    StopReason.VALIDATION: "You gave `patience`. `r.x` is the best mean; more data or a smaller "
    "network may do better.",
}
MARKS = "<!-- reasons: written by tools/pages.py -->", "<!-- end of reasons -->"


def reasons_table() -> str:
    """Return the table of reasons: the success and the sentence are those of the code."""
    lines = ["| reason | message | success | what to do |", "| --- | --- | --- | --- |"]
    for reason, advice in ADVICE.items():
        success = "no"
        if reason.converged:
            success = "yes" if reason is StopReason.TARGET_REACHED else "yes, without a target"
        lines.append(f"| `{reason.name}` | {reason.sentence} | {success} | {advice} |")
    return "\n".join(lines)


def with_reasons(page: str) -> str:
    """Return the page with the table between its marks renewed."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n{reasons_table()}\n{MARKS[1]}{after}"


def reasons() -> None:
    """Write the table into its page."""
    page = DOCS / "ends.md"
    page.write_text(with_reasons(page.read_text(encoding="utf-8")), encoding="utf-8")


# --- Figures --------------------------------------------------------------------------------------


def figure(width: float = 7.6, panels: int = 2) -> tuple[Any, Any]:
    """Return a figure with panels side by side, in the style of all."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "mmes", "axes.spines.top": False, "axes.grid": True,
         "axes.spines.right": False, "grid.color": "#dddddd", "svg.fonttype": "none"}
    )  # fmt: skip
    return plt.subplots(1, panels, figsize=(width, 3.0), layout="constrained")


def save(made: Any, name: str) -> None:
    """Write a figure to docs/figures, and as PNG to out/ to look at."""
    (DOCS / "figures").mkdir(exist_ok=True)
    made.savefig(DOCS / "figures" / f"{name}.svg", metadata={"Date": None})
    shown = DOCS.parent / "out"
    shown.mkdir(exist_ok=True)
    made.savefig(shown / f"{name}.png", dpi=110)


def sigma0() -> None:
    """Draw evaluations to 1e-8 against sigma0, from a start at distance 3 along each variable."""
    made, axes = figure()
    steps = 10.0 ** np.arange(-4, 4.5, 1.0)
    for axis, n in zip(axes, (20, 200), strict=True):
        for color, name in zip(COLORS, ("sphere", "ellipsoid"), strict=False):
            options = {} if name == "sphere" else {"alpha": 3}
            f = get(name, dimension=n, **options)
            spent = [
                np.median(
                    [
                        mmes.minimize(
                            f.batch, np.full(n, 3.0), step, vectorized=True, seed=seed, target=1e-8,
                            max_evaluations=2e6,
                        ).nfev
                        for seed in (1, 2, 3)
                    ]
                )
                for step in steps
            ]  # fmt: skip
            print(name, n, [int(s) for s in spent])
            label = "sphere" if name == "sphere" else "ellipsoid, condition 1e3"
            axis.loglog(steps, spent, "o-", color=color, label=label, markersize=4)
        axis.axvspan(0.3, 3, color="#f2e9c9", zorder=0)
        axis.set(title=f"n = {n}", xlabel="sigma0 (the optimum is 3 away)", ylim=(50 * n, 2000 * n))
    axes[0].set_ylabel("evaluations to 1e-8")
    axes[1].legend(frameon=False)
    save(made, "sigma0")


def bounds() -> None:
    """Draw the map T near a wall, and the gaps of three treatments for an optimum on all walls."""
    made, axes = figure()
    one = np.ones(1)
    box = Smooth.around(-one, one, Start(0 * one, one))
    y = np.linspace(0.7, 1.4, 701)
    axes[0].plot(y, [float(box.map_points(np.array([v]))[0]) for v in y], color=COLORS[0])
    axes[0].plot(y, np.minimum(y, 1), "--", color=COLORS[1], linewidth=1)
    axes[0].axhline(1, color="#888888", linewidth=0.8)
    axes[0].legend(["smooth, T(y)", "clip", "the wall"], frameon=False, loc="lower center")
    axes[0].set(
        title="near the wall at 1", xlabel="y, where the search runs", ylabel="x, evaluated"
    )
    n = 200
    for color, handling in zip(COLORS, ("smooth", "clip", "reflect"), strict=False):
        r = mmes.minimize(
            lambda points: ((points - 2) ** 2).sum(1),
            bounds=(np.full(n, -1.0), 1.0),
            bounds_handling=handling,
            vectorized=True,
            seed=1,
            target=n + 1e-8,
            max_evaluations=40_000,
        )
        print(handling, r.nfev, r.fun - n)
        axes[1].semilogy(
            r.history["evaluations"], r.history["best"] - n, color=color, label=handling
        )
    axes[1].set(title=f"optimum on all {n} walls", xlabel="evaluations", ylabel="gap")
    axes[1].legend(frameon=False)
    save(made, "bounds")


def noise() -> None:
    """Draw the true value at the mean with and without the answer to noise, n = 200."""
    made, axes = figure()
    n = 200
    for axis, (title, relative, absolute) in zip(
        axes, (("10 % noise", 0.1, 0.0), ("noise of standard deviation 1", 0.0, 1.0)), strict=True
    ):
        for color, word in zip(COLORS, ("auto", "off"), strict=False):
            rng, trace = np.random.default_rng(1), ([], [])

            def f(
                points: Any, rng: Any = rng, relative: float = relative, absolute: float = absolute
            ) -> Any:
                true, normal = (points**2).sum(1), rng.standard_normal(len(points))
                return true * (1 + relative * normal) + absolute * normal

            def watch(p: Any, trace: tuple[list[float], list[float]] = trace) -> None:
                if p.generation % 5 == 0:
                    trace[0].append(p.evaluations)
                    trace[1].append(float((p.mean**2).sum()))

            r = mmes.minimize(
                f, np.full(n, 3.0), 1.0, vectorized=True, seed=1, noise=word, callback=watch,
                max_evaluations=150_000,
            )  # fmt: skip
            print(title, word, r.nfev, float((r.x**2).sum()), r.reason.name)
            axis.semilogy(*trace, color=color, label=f'noise="{word}"', linewidth=1)
        axis.set(title=title, xlabel="evaluations", xticks=range(0, 150_001, 50_000))
    axes[0].set_ylim(1e-8, None)
    axes[0].set_ylabel("true f at the mean")
    axes[1].legend(frameon=False)
    save(made, "noise")


def step_size() -> None:
    """Draw sigma over the evaluations: smooth, at kinks, and with minibatches; n = 150."""
    made, axes = figure(10.0, 3)
    n = 150
    plain = (
        ("Sphere", lambda points: (points**2).sum(1), 1e-8),
        ("sum of abs(x - 1)", lambda points: np.abs(points - 1).sum(1), 1e-8),
    )
    for axis, (title, f, target) in zip(axes, plain, strict=False):
        r = mmes.minimize(
            f, np.full(n, 3.0), 1.0, vectorized=True, seed=1, target=target, max_evaluations=4e5
        )
        print(title, r.nfev, r.fun, r.reason.name)
        axis.semilogy(
            r.history["evaluations"], r.history["sigma"], color=COLORS[0], label="the default"
        )
        axis.set(title=title, xlabel="evaluations")
    for color, rule in zip(COLORS, ("forces", "probes"), strict=False):
        rng, trace = np.random.default_rng(1), ([], [])
        matrix = rng.standard_normal((5000, n))
        right = matrix @ rng.standard_normal(n) + rng.standard_normal(5000)
        es = mmes.AdaptiveMMES(np.zeros(n), 0.3, seed=1, step_size=rule)
        while es.evaluations < 40_000 and es.sigma > 1e-9:
            rows = rng.integers(5000, size=64)
            es.tell(((es.ask() @ matrix[rows].T - right[rows]) ** 2).mean(1))
            trace[0].append(es.evaluations)
            trace[1].append(es.sigma)
        loss = float(((matrix @ es.mean - right) ** 2).mean())
        print("minibatches", rule, es.evaluations, es.sigma, loss)
        label = "the default" if rule == "forces" else 'step_size="probes"'
        axes[2].semilogy(*trace, color=color, label=f"{label}\nloss {loss:.3g}")
    axes[2].set(title="64 of 5000 equations", xlabel="evaluations", ylim=(1e-9, 3))
    axes[0].set_ylabel("sigma")
    axes[2].legend(frameon=False, loc="lower right")
    save(made, "step_size")


class SmallNetwork:
    """A network of 10, 16 and 4 units in numpy, and data that another one has made."""

    n = 11 * 16 + 17 * 4
    samples, held_out = 4000, 2000

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.data = rng.standard_normal((self.samples + self.held_out, 10))
        answers = self.answers(2 * rng.standard_normal((1, self.n)), self.data)[0]
        self.labels = (answers + 0.5 * rng.gumbel(size=answers.shape)).argmax(1)

    def answers(self, points: Any, data: Any) -> Any:
        """Return what each candidate says to each sample."""
        first = points[:, :176].reshape(-1, 11, 16)
        second = points[:, 176:].reshape(-1, 17, 4)
        hidden = np.tanh(np.einsum("si,kij->ksj", data, first[:, :-1]) + first[:, -1:])
        return np.einsum("ksj,kjc->ksc", hidden, second[:, :-1]) + second[:, -1:]

    def entropy(self, points: Any, rows: Any) -> Any:
        """Return the cross entropy of each candidate on these rows of the data."""
        answers = self.answers(points, self.data[rows])
        answers -= answers.max(2, keepdims=True)
        right = np.take_along_axis(answers, self.labels[rows][None, :, None], 2)[..., 0]
        return (np.log(np.exp(answers).sum(2)) - right).mean(1)

    def errors(self, points: Any, rows: Any) -> Any:
        """Return the share of these rows that each candidate gets wrong."""
        return (self.answers(points, self.data[rows]).argmax(2) != self.labels[rows]).mean(1)


def networks() -> None:
    """Draw the loss on held-out data of a small network, by where its batches come from."""
    made, axes = figure()
    net, rng = SmallNetwork(), np.random.default_rng(2)
    test = np.arange(net.samples, net.samples + net.held_out)
    start = 0.3 * rng.standard_normal(net.n)

    def rows(generation: int) -> Any:
        return np.random.default_rng(generation).integers(0, net.samples, 64)

    def followed(axis: Any, look: Any, label: str, fun: Any, **options: Any) -> None:
        trace: tuple[list[float], list[float]] = [], []

        def watch(p: Any) -> None:
            if p.generation % 10 == 0:
                trace[0].append(p.evaluations)
                trace[1].append(look(p.mean[None], test).item())

        options = {"vectorized": True} | options
        r = mmes.minimize(
            fun, start, 0.1, seed=1, callback=watch, max_evaluations=30_000, **options
        )
        print(label, r.nfev, trace[1][-1], r.reason.name)
        axis.plot(*trace, color=COLORS[len(axis.lines)], label=label, linewidth=1)

    draws = np.random.default_rng(3)

    def another(x: Any) -> float:
        return float(net.entropy(x[None], draws.integers(0, net.samples, 64))[0])

    followed(axes[0], net.entropy, "the next batch per generation", net.entropy, batches=rows)
    followed(axes[0], net.entropy, "another batch per candidate", another, vectorized=False)
    followed(axes[0], net.entropy, "always the same batch", lambda x: net.entropy(x, rows(0)))
    axes[0].set(title="cross entropy, held out", xlabel="evaluations", ylim=(0.5, 1.6))
    followed(axes[1], net.errors, "trained on cross entropy", net.entropy, batches=rows)
    followed(axes[1], net.errors, "trained on the errors", net.errors, batches=rows)
    axes[1].set(title="share of errors, held out", xlabel="evaluations")
    for axis in axes:
        axis.legend(frameon=False)
        axis.set_xticks(range(0, 30_001, 10_000))
    save(made, "networks")


MAKERS: dict[str, Callable[[], None]] = {
    maker.__name__: maker for maker in (reasons, sigma0, bounds, noise, step_size, networks)
}


def main(arguments: list[str]) -> int:
    """Make what is named, or all."""
    if "--check" in arguments:
        page = (DOCS / "ends.md").read_text(encoding="utf-8")
        return int(page != with_reasons(page))
    for name in arguments or MAKERS:
        MAKERS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
