"""Networks without gradients, beside OpenAI-ES, PGPE and MeZO: what docs/networks.md reports.

    python benchmarks/networks.py transformer [--small] [--ours] [--seconds 500]
    python benchmarks/networks.py large|policy [--small] [--seconds 250] [--only NAME ..]

`transformer`: the model of ``examples/language_model.py`` (4.9 million parameters), trained on
Python sources and tuned on C headers with a new batch per generation; the loss on held-out text
after 2000, 4000, 8000 and 20,000 evaluations. AdaptiveMMES begins with three different sigma0 and
has no other setting; the others are tuned: several settings each, all of them reported. All use the
same batches and the same code for the loss, in bfloat16.

`large`: one of 121 million parameters; the share of time that the optimizer takes.
`policy`: the network of ``examples/cart_pole.py`` (1e5 weights); its reward.

Results are printed, and written after each run to networks-NAME.json in ``$OUT`` (else here).
Nothing new is begun after ``--seconds``. The peers are short implementations of their own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from network_peers import followed, mezo, openai_es, pgpe

import mmes
from mmes.integrations.torch import FlatParameters, minimize_module

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIGMA = 0.003  # with which the peers are tried first


class Report:
    """Prints results and writes all of them to a file after each.

    Parameters
    ----------
    name : str
        Of the file.
    seconds : float
        After which nothing new is begun.
    ours : bool
        Whether the peers are left out.
    only : list of str
        How the names of the runs that are made begin; all of them, if there is none.
    """

    def __init__(self, name: str, seconds: float, ours: bool, only: list[str]):
        self.ours, self._only = ours, tuple(only)
        self.path = Path(os.environ.get("OUT", ".")) / f"networks-{name}.json"
        self.rows: list[dict[str, Any]] = []
        self._seconds = seconds
        device = torch.cuda.get_device_name() if DEVICE == "cuda" else "the CPU"
        self.add(name="machine", device=device, torch=torch.__version__, mmes=mmes.__version__)

    def add(self, **row: Any) -> None:
        """Take note of a result."""
        self.rows.append(row | {"at": round(time.perf_counter() - BEGAN, 1)})
        self.path.write_text(json.dumps(self.rows, indent=1))
        print(json.dumps(row), flush=True)

    def run(self, name: str, job: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """Do a job and add its result, if there is time; an error is a result too."""
        if self._only and not name.startswith(self._only):
            return None
        if time.perf_counter() - BEGAN > self._seconds:
            self.add(name=name, skipped="no time left")
            return None
        began = time.perf_counter()
        try:
            found = job()
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
        self.add(name=name, **found, seconds=round(time.perf_counter() - began, 2))
        return found


# The transformer


def working_mode(flat: FlatParameters, loss: Any, dtype: Any, start: Any, batch: Any) -> Any:
    """Return how candidates can be evaluated here: all at once, or one after the other."""
    try:
        flat.objective(loss, dtype=dtype, mode="vmap")(torch.stack([start, start]), batch)
    except RuntimeError as error:
        print(f"vmap cannot do it: {error}", flush=True)
        return "loop"
    return "vmap"


def transformer(report: Report, small: bool) -> None:
    import language_model as example

    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    net = example.Transformer(*((32, 2, 2, 32) if small else (256, 6, 4, 256))).to(DEVICE)
    limit, steps = (400_000, 100) if small else (20_000_000, 1500)
    marks = (500, 1000) if small else (2000, 4000, 8000, 20_000)
    budget = marks[-1]
    python, _ = example.split(example.text(".py", limit, DEVICE))
    headers, held_out = example.split(example.text(".h", limit, DEVICE))
    began = time.perf_counter()
    example.train(net, example.Windows(python, net.length, 64, seed=1), steps)
    batches = example.Windows(headers, net.length, 16, seed=3)
    validation = example.HeldOut(
        example.Windows(held_out, net.length, 64, seed=9), 8, example.entropy
    )
    dtype = torch.bfloat16 if DEVICE == "cuda" else None
    flat = FlatParameters(net)
    judge = flat.objective(validation, dtype=dtype, mode="loop")
    start = torch.tensor(flat.x0, dtype=torch.float32, device=DEVICE)
    report.add(
        name="pretrained",
        parameters=flat.n,
        characters=[python.numel(), headers.numel(), held_out.numel()],
        seconds=round(time.perf_counter() - began, 1),
        before=round(judge.value_of(start), 4),
    )

    def by_gradients() -> dict[str, Any]:
        copy = example.Transformer(*((32, 2, 2, 32) if small else (256, 6, 4, 256))).to(DEVICE)
        copy.load_state_dict(net.state_dict())
        example.train(copy, example.Windows(headers, net.length, 32, seed=5), 300, 3e-4)
        return {"after": round(judge.value_of(FlatParameters(copy).x0), 4)}

    def ours(sigma0: float, seed: int, **options: Any) -> dict[str, Any]:
        left, curve, sigmas = list(marks), {}, []

        def look(progress: Any) -> None:
            while left and progress.evaluations >= left[0]:
                curve[left.pop(0)] = round(judge.value_of(progress.mean), 4)
            if progress.generation % 50 == 0:
                sigmas.append(float(f"{progress.sigma:.3g}"))

        result = minimize_module(
            net,
            example.entropy,
            sigma0,
            batches=batches,
            max_evaluations=budget,
            dtype=dtype,
            mode=mode,
            seed=seed,
            callback=look,
            **options,
        )
        if left:
            curve[left[0]] = round(judge.value_of(result.x), 4)
        flat.write(start)
        return {"curve": curve, "sigmas": sigmas, "strategy": result.strategy}

    mode = working_mode(flat, example.entropy, dtype, start, batches(0))
    report.add(name="evaluation", mode=mode)
    objective = flat.objective(example.entropy, dtype=dtype, mode=mode)

    def f(points: torch.Tensor, generation: int) -> torch.Tensor:
        return torch.tensor(objective(points, batches(generation)), device=DEVICE)

    def peer(kind: Any, sigma: float, rate: float, until: tuple[int, ...] = marks) -> Any:
        return followed(kind(f, start, sigma, rate), judge.value_of, until)

    report.run("gradients: 300 steps of AdamW", by_gradients)
    for sigma0 in (0.003, 0.0003, 0.01):
        report.run(f"mmes sigma0={sigma0}", lambda s=sigma0: ours(s, 1))

    def tuned(name: str, kind: Any, rates: tuple[float, ...], until: tuple[int, ...]) -> float:
        """Try several rates, then two other sigmas with the best; return the best rate."""
        tried: dict[float, float] = {}

        def one(sigma: float, rate: float) -> None:
            label = f"{name} sigma={sigma} rate={rate}" + (", begun" if until != marks else "")
            found = report.run(label, lambda: peer(kind, sigma, rate, until)) or {}
            value = found.get("curve", {}).get(until[-1], math.nan)
            if math.isfinite(value):
                tried[rate] = min(value, tried.get(rate, math.inf))

        for rate in rates:
            one(SIGMA, rate)
        best = min(tried, key=tried.__getitem__, default=rates[0])
        if until == marks:
            one(SIGMA / 3, best)
            one(SIGMA * 3, best)
        return best

    report.run("mmes sigma0=0.003 lambda=200", lambda: ours(0.003, 1, population_size=200))
    if report.ours:
        return
    tuned("OpenAI-ES", openai_es, (3e-4, 1e-3, 1e-4, 3e-3), marks)
    # Its steps are many and short, and take the longest: the best at the first mark goes on.
    rate = tuned("MeZO", mezo, (1e-4, 3e-5, 3e-4, 1e-5), marks[:1])
    report.run(f"MeZO sigma={SIGMA} rate={rate}", lambda: peer(mezo, SIGMA, rate))
    tuned("PGPE", pgpe, (3e-4, 1e-3, 1e-4, 3e-3), marks)
    for sigma0 in (0.003, 0.0003, 0.01):
        report.run(f"mmes sigma0={sigma0} seed=2", lambda s=sigma0: ours(s, 2))


# A large one, and a policy


def synchronized() -> float:
    """Return the time when the device has done its work."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def large(report: Report, small: bool) -> None:
    import language_model as example

    torch.manual_seed(1)
    net = example.Transformer(*((32, 2, 2, 32) if small else (960, 11, 15, 256))).to(DEVICE)
    limit = 400_000 if small else 20_000_000
    python, _ = example.split(example.text(".py", limit, DEVICE))
    headers, held_out = example.split(example.text(".h", limit, DEVICE))
    began = time.perf_counter()
    example.train(net, example.Windows(python, net.length, 32, seed=1), 50 if small else 600, 3e-4)
    dtype = torch.bfloat16 if DEVICE == "cuda" else None
    flat = FlatParameters(net)
    judge = flat.objective(
        example.HeldOut(example.Windows(held_out, net.length, 64, seed=9), 2, example.entropy),
        dtype=dtype,
        mode="loop",
    )
    start = torch.tensor(flat.x0, dtype=torch.float32, device=DEVICE)
    before = round(judge.value_of(start), 4)
    pretraining = round(time.perf_counter() - began, 1)
    report.add(name="pretrained", parameters=flat.n, before=before, seconds=pretraining)

    def share(sequences: int, generations: int) -> dict[str, Any]:
        batches = example.Windows(headers, net.length, sequences, seed=3)
        objective = flat.objective(example.entropy, dtype=dtype, chunk=8)
        inside: list[float] = []

        def timed(points: torch.Tensor, batch: Any) -> Any:
            began = synchronized()
            values = objective(points, batch)
            inside.append(synchronized() - began)
            return values

        ends: list[float] = []
        result = mmes.minimize(
            timed,
            start,
            0.003,
            vectorized=True,
            batches=batches,
            max_generations=generations,
            seed=1,
            callback=lambda progress: ends.append(synchronized()),
            archive_size=16 if small else 64,
            population_dtype="float32",
            **({} if small else {"archive_dtype": "bfloat16"}),
        )
        # The first ones compile kernels; the last call is that of the end.
        whole = (ends[-2] - ends[4]) / (len(ends) - 6)
        evaluating = sum(inside[5 : len(ends) - 1]) / (len(ends) - 6)
        return {
            "sequences": sequences,
            "population_size": result.options["population_size"],
            "ms_per_generation": round(1e3 * whole, 1),
            "share_of_the_optimizer": round(1 - evaluating / whole, 3),
            "after": round(judge.value_of(result.x), 4),
            "evaluations": result.nfev,
            "peak_GB": round(torch.cuda.max_memory_allocated() / 1e9, 1) if dtype else None,
            "kernel": result.kernel,
        }

    report.run("large, 64 sequences", lambda: share(64, 12 if small else 60))
    report.run("large, 16 sequences", lambda: share(16, 12 if small else 100))


class Replayed:
    """A function of tensors as a CUDA graph for each of their shapes: most of it is launches."""

    def __init__(self, call: Callable[..., torch.Tensor]):
        self._call = call
        self._graphs: dict[Any, tuple[torch.cuda.CUDAGraph, list[torch.Tensor], torch.Tensor]] = {}

    def __call__(self, *given: torch.Tensor) -> torch.Tensor:
        """Return what the function returns."""
        if DEVICE == "cpu":
            return self._call(*given)
        shapes = tuple(tensor.shape for tensor in given)
        if shapes not in self._graphs:
            held, aside = [tensor.clone() for tensor in given], torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                self._call(*held)
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = self._call(*held)
            self._graphs[shapes] = graph, held, found
        graph, held, found = self._graphs[shapes]
        for tensor, new in zip(held, given, strict=True):
            tensor.copy_(new)
        graph.replay()
        return found.clone()


def policy(report: Report, small: bool) -> None:
    import cart_pole as example

    network = example.Policy(8 if small else 312)
    start = network.start(DEVICE)
    marks = (200, 400) if small else (2000, 4000, 8000, 12_000)
    candidates = 40
    batches = example.Starts((256 if small else 4096) // candidates, seed=1, device=DEVICE)
    tested = example.Starts(1024, seed=9, device=DEVICE)(0)

    rewards = Replayed(lambda points, starts: example.rewards(network, points, starts))

    def f(points: torch.Tensor, generation: int) -> torch.Tensor:
        return -rewards(points, batches(generation))

    def value(x: torch.Tensor) -> float:
        return float(rewards(x[None].float(), tested))

    def ours(sigma0: float, seed: int) -> dict[str, Any]:
        left, curve = list(marks), {}

        def look(progress: Any) -> None:
            while left and progress.evaluations >= left[0]:
                curve[left.pop(0)] = round(value(progress.mean), 4)

        result = mmes.minimize(
            lambda points, starts: -rewards(points.float(), starts),
            start,
            sigma0,
            vectorized=True,
            batches=batches,
            max_evaluations=marks[-1],
            seed=seed,
            callback=look,
            device=DEVICE,
        )
        if left:
            curve[left[0]] = round(value(result.x), 4)
        return {"curve": curve, "sigma": result.sigma}

    report.add(name="start", weights=network.n, episodes=batches.episodes, reward=value(start))

    def peer(name: str, kind: Any, sigma: float, rate: float) -> float:
        found = report.run(
            f"{name} sigma={sigma} rate={rate}",
            lambda: followed(kind(f, start, sigma, rate, candidates // 2), value, marks),
        )
        return (found or {}).get("curve", {}).get(marks[-1], -math.inf)

    report.run("mmes sigma0=0.05", lambda: ours(0.05, 1))
    for name, kind in (("OpenAI-ES", openai_es), ("PGPE", pgpe)):
        reached = {rate: peer(name, kind, 0.05, rate) for rate in (0.01, 0.03, 0.003, 0.1)}
        best = max(reached, key=reached.__getitem__)
        for sigma in (0.02, 0.15):
            peer(name, kind, sigma, best)
    for sigma0 in (0.01, 0.2):
        report.run(f"mmes sigma0={sigma0}", lambda s=sigma0: ours(s, 1))
    report.run("mmes sigma0=0.05 seed=2", lambda: ours(0.05, 2))


PARTS: dict[str, Callable[[Report, bool], None]] = {
    "transformer": transformer,
    "large": large,
    "policy": policy,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--small", action="store_true", help="for a CPU, to see that it works")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--ours", action="store_true", help="the transformer without the peers")
    parser.add_argument("--only", nargs="*", default=[], help="how names of runs begin")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    report = Report(given.part, given.seconds, given.ours, given.only)
    PARTS[given.part](report, given.small)


BEGAN = time.perf_counter()

if __name__ == "__main__":
    main()
