"""Minimise over the parameters of a PyTorch module, without gradients.

>>> import torch
>>> from mmes.integrations.torch import minimize_module
>>> net, data = torch.nn.Linear(3, 1), torch.ones(5, 3)
>>> r = minimize_module(net, lambda model: model(data).square().mean(), 0.1, max_evaluations=500)
>>> bool(net(data).square().mean() < 1e-2)               # net holds the best parameters now
True
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmes.integrations.own_options import refuse_own_options
from mmes.integrations.torch_module import (
    FlatParameters,
    LoopWarning,
    Loss,
    Mode,
    ModuleObjective,
    Randomness,
    torch,
)
from mmes.minimize import minimize
from mmes.run.result import Result

__all__ = ["FlatParameters", "LoopWarning", "ModuleObjective", "minimize_module"]

_OWN_OPTIONS = {
    "fun": "the loss is the objective",
    "x0": "the search starts at the module's parameters",
    "vectorized": "the module is given all candidates of a generation at once",
}


def minimize_module(
    module: torch.nn.Module,
    loss: Loss,
    sigma0: float | None = None,
    *,
    chunk: int | None = None,
    device: Any = None,
    dtype: torch.dtype | None = None,
    mode: Mode = "auto",
    randomness: Randomness = "error",
    training: bool = False,
    **options: Any,
) -> Result:
    """Minimise a loss over the trainable parameters of a module.

    Parameters
    ----------
    module : torch.nn.Module
        The start; afterwards it holds the best parameters found. If the run ends by an error it is
        unchanged. Where candidates are evaluated in place, it holds the mean of the search whenever
        a callback is called.
    loss : callable
        Takes the module, and with `batches` the batch; returns a tensor with one number.
    sigma0 : float
        Start mutation strength: by how much a typical parameter may be wrong. A tenth of the
        parameters' size is a good first try.
    chunk, device, dtype, mode, randomness, training
        As in `ModuleObjective`.
    **options
        As in `mmes.minimize`. ``batches=loader`` gives each generation the next batch of a
        DataLoader: ``loss(module, batch)``. ``validation`` takes the module with the mean in it.
        ``scale="parameters"`` takes the standard deviation of each tensor as the typical size of
        its entries (`FlatParameters.deviations`); `sigma0` multiplies it.

    Returns
    -------
    Result
        As of `mmes.minimize`; `x` is the vector of the parameters, a tensor where the module is on
        a GPU: there the search takes place on it too.
    """
    refuse_own_options(options, "minimize_module", _OWN_OPTIONS)
    flat = FlatParameters(module)
    place = flat.device if device is None else torch.device(device)
    if place.type == "cuda" and not options.keys() & {"device", "workers", "kernel"}:
        # Candidates are made where they are evaluated.
        wide = torch.float64 in (flat.dtypes if dtype is None else {dtype})
        options |= {"device": str(place), "population_dtype": "float64" if wide else "float32"}
    objective = flat.objective(
        loss,
        chunk=chunk,
        device=device,
        dtype=dtype,
        mode=mode,
        randomness=randomness,
        training=training,
    )
    if isinstance(options.get("scale"), str):
        if options["scale"] != "parameters":
            raise ValueError(f"scale must be 'parameters' or sizes, not {options['scale']!r}")
        options["scale"] = flat.deviations()
    start = flat.x0

    def restored(progress: Any) -> None:
        """Leave the mean in the module, not the candidate that was evaluated last."""
        if objective.mode == "in_place":
            flat.write(progress.mean)

    if callable(options.get("validation")):
        judge = flat.objective(options["validation"], device=device, dtype=dtype, training=training)

        def validation(x: Any) -> float:
            judge.mode = "in_place" if objective.mode == "in_place" else "loop"
            return judge.value_of(x)

        options["validation"] = validation
    given = options.pop("callback", None)
    others = [] if given is None else given if isinstance(given, Sequence) else [given]
    try:
        callbacks = [restored, *others]
        result = minimize(objective, start, sigma0, vectorized=True, callback=callbacks, **options)
    except BaseException:
        if objective.mode == "in_place":
            flat.write(start)
        raise
    flat.write(result.x)
    return result
