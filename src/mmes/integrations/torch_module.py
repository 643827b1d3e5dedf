"""The parameters of a PyTorch module as one vector, and a loss as a function of it."""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mmes.base import memory
from mmes.base.extras import missing
from mmes.base.tensors import to_numpy
from mmes.errors import MMESWarning, warn_user
from mmes.evaluate.values import as_value
from mmes.integrations.precision import SmallSteps

try:
    import torch
    from torch.func import functional_call, vmap
except ImportError as error:
    raise missing("torch", "torch") from error

Loss = Callable[..., Any]
Mode = Literal["auto", "vmap", "loop", "in_place"]
Randomness = Literal["error", "different", "same"]

# What PyTorch says when vmap cannot do something that a plain call can.
_NOT_FOR_VMAP = (
    "atching rule not implemented",
    "vmap: It looks like",
    "functorch transform",
    "must only return Tensors",
)
_SHARE_FOR_BATCH = 0.25
_COPIES = 4  # of a candidate: as it comes, on the device, and two for what the forward pass makes


class LoopWarning(MMESWarning):
    """The candidates are evaluated one after the other, since vmap cannot evaluate them at once."""


class FlatParameters:
    """The trainable parameters of a module as one vector.

    Those with ``requires_grad``, in the order of ``named_parameters()``; tied ones count once.

    Parameters
    ----------
    module : torch.nn.Module
        The module; it is read and, by `write` alone, written.

    Attributes
    ----------
    names : tuple of str
        The parameters, in the order of the vector.
    n : int
        The number of variables.
    """

    def __init__(self, module: torch.nn.Module):
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, not {module!r}")
        self.module = module
        trainable = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not trainable:
            raise ValueError("the module has no parameters with requires_grad: nothing to minimise")
        for name, parameter in trainable.items():
            if not parameter.is_floating_point() or parameter.is_meta:
                where = "on the device meta" if parameter.is_meta else f"of {parameter.dtype}"
                raise ValueError(f"the parameter {name} must hold real numbers, not be {where}")
        self.names = tuple(trainable)
        self._parameters = tuple(trainable.values())
        self._sizes = [parameter.numel() for parameter in self._parameters]
        self.n = sum(self._sizes)

    @property
    def device(self) -> torch.device:
        """Where the module is: the device of its first parameter."""
        return self._parameters[0].device

    @property
    def dtypes(self) -> set[torch.dtype]:
        """The formats of the parameters."""
        return {parameter.dtype for parameter in self._parameters}

    @property
    def x0(self) -> NDArray[np.float64]:
        """The parameters as they are now, in float64."""
        parts = [p.detach().reshape(-1).to("cpu", torch.float64) for p in self._parameters]
        return torch.cat(parts).numpy()

    def unflatten(
        self, points: Any, device: Any = None, dtype: torch.dtype | None = None
    ) -> dict[str, torch.Tensor]:
        """Return vectors as parameters.

        Parameters
        ----------
        points : array or tensor, shape (n,) or (k, n)
            One vector, or one per row.
        device, dtype : optional
            Where and in which format; by default those of each parameter.

        Returns
        -------
        dict of str to tensor
            One tensor per parameter, of its shape, with k in front if `points` has rows.
        """
        if not isinstance(points, torch.Tensor):
            points = torch.tensor(np.asarray(points))
        if points.shape[-1] != self.n:
            raise ValueError(f"points must have {self.n} variables, not {points.shape[-1]}")
        parts = torch.split(points, self._sizes, dim=-1)
        return {
            name: part.reshape(points.shape[:-1] + parameter.shape).to(
                device or parameter.device, dtype or parameter.dtype
            )
            for name, parameter, part in zip(self.names, self._parameters, parts, strict=True)
        }

    def write(self, x: Any) -> None:
        """Write one vector into the module's parameters, one after the other."""
        x = x if isinstance(x, torch.Tensor) else np.asarray(x)
        if x.shape != (self.n,):
            raise ValueError(f"x must have the shape ({self.n},), not {tuple(x.shape)}")
        first = 0
        with torch.no_grad():
            for parameter, size in zip(self._parameters, self._sizes, strict=True):
                part = x[first : first + size]
                part = part if isinstance(part, torch.Tensor) else torch.tensor(part)
                parameter.copy_(part.reshape(parameter.shape))
                first += size

    def deviations(self) -> NDArray[np.float64]:
        """Return the typical size of each variable: the standard deviation of its tensor.

        That of tensors whose entries are all alike, biases at the start say, is a tenth of the
        typical one, and no other is smaller.
        """
        each = np.array(
            [
                float(p.detach().double().std(correction=0)) if p.numel() else 0.0
                for p in self._parameters
            ]
        )
        sizes = np.array(self._sizes)
        typical = math.sqrt(float(sizes @ each**2) / self.n)
        if not 0 < typical < math.inf:
            raise ValueError(
                "scale='parameters' needs parameters that are finite and not all alike: a scale "
                "cannot be read from them"
            )
        return np.repeat(np.maximum(each, typical / 10), sizes)

    def objective(
        self,
        loss: Loss,
        chunk: int | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> ModuleObjective:
        """Return a loss of the module as an objective for ``mmes.minimize(..., vectorized=True)``.

        Parameters are those of `ModuleObjective`.
        """
        return ModuleObjective(self, loss, chunk=chunk, device=device, dtype=dtype, **options)


class ModuleObjective:
    """A loss of a module as a function of its flat parameters, for many candidates at once.

    Parameters
    ----------
    flat : FlatParameters
        The module.
    loss : callable
        Takes the module, to be called and used as ever, and a batch where the objective is given
        one; returns a tensor with one number.
    chunk : int, optional
        Candidates evaluated at once; by default as many as a quarter of the free memory holds, and
        half as many whenever a GPU's memory is too small for the forward pass.
    device, dtype : optional
        Where and in which format to compute; by default as the module is. What the loss brings
        along, such as data, must fit.
    mode : {"auto", "vmap", "loop", "in_place"}
        All candidates of a chunk at once by `torch.func.vmap`, or one after the other: as a copy of
        the parameters ("loop"), or written into the module ("in_place"), which needs no memory
        besides and leaves the last candidate there. "auto" is vmap, and the loop from the first
        call on that vmap cannot do, with a warning; in place where no copy fits.
    randomness : {"error", "different", "same"}
        Whether the loss may draw random numbers (dropout, minibatches): an error; yes, for each
        candidate different ones; yes, the same for the candidates of a chunk. The objective is
        noisy then.
    training : bool
        Whether the module keeps its training mode; by default it is in evaluation mode during a
        call.

    Notes
    -----
    The module is unchanged after a call, but in place. Values are the same to the bit for the same
    mode, chunk, device and version of PyTorch; vmap and the loop differ by rounding.
    """

    def __init__(
        self,
        flat: FlatParameters,
        loss: Loss,
        *,
        chunk: int | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        mode: Mode = "auto",
        randomness: Randomness = "error",
        training: bool = False,
    ):
        for name, value, allowed in (
            ("mode", mode, get_args(Mode)),
            ("randomness", randomness, get_args(Randomness)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, not {value!r}")
        moved = {"device": device, "dtype": dtype}
        if mode == "in_place" and any(value is not None for value in moved.values()):
            raise ValueError(
                f"mode='in_place' uses the module as it is and cannot be combined with {moved}"
            )
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise TypeError(f"dtype must be a torch.dtype of real numbers, not {dtype!r}")
        if chunk is not None and (not isinstance(chunk, int) or chunk < 1):
            raise ValueError(f"chunk must be an integer >= 1, not {chunk!r}")
        self.flat = flat
        self.mode: Mode = mode
        self._may_loop = mode == "auto"
        self._call = _LossOf(flat.module, loss)
        self._chunk = chunk
        self._device = None if device is None else torch.device(device)
        self._dtype = dtype
        self._randomness: Randomness = randomness
        self._training = training
        dtypes = flat.dtypes if dtype is None else {dtype}
        coarsest = max(dtypes, key=lambda kind: torch.finfo(kind).eps)
        self._small_steps = SmallSteps(
            torch.finfo(coarsest).eps,
            str(coarsest).removeprefix("torch."),
            "dtype=torch.float64 computes with more digits",
        )
        # The host's copy of a chunk. Not what `ask` returned, which is read-only; and in float32
        # where that is all the module wants, which halves what travels to a device.
        self._wide = torch.float64 if torch.float64 in dtypes else torch.float32
        self._buffer = torch.empty((0, flat.n), dtype=self._wide)

    def __call__(self, points: Any, *batch: Any) -> Any:
        """Return the loss of each row, on a batch where the loss takes one.

        As an array; if a loss is no real number, as a list, which `mmes.minimize` refuses.
        """
        self._small_steps.look(points)
        self._call.arguments = batch
        found: list[Any] = []
        with _as_it_was(self.flat.module, self._training), torch.no_grad():
            if self._rows() == 0:
                found = self._values_in_place(points)
            while len(found) < points.shape[0]:
                rows = points[len(found) : len(found) + self._rows()]
                try:
                    found += self.values_of(self.flat.unflatten(*self._moved(rows)))
                except torch.OutOfMemoryError:
                    if len(rows) == 1:
                        raise
                    self._chunk = max(1, len(rows) // 2)
                    torch.cuda.empty_cache()
        with contextlib.suppress(TypeError, ValueError):
            return np.array([as_value(value) for value in found])
        return found

    def value_of(self, x: Any) -> float:
        """Return the loss of one point; random numbers may be drawn for it."""
        self._call.arguments = ()
        with _as_it_was(self.flat.module, self._training), torch.no_grad():
            if self.mode == "in_place":
                self.flat.write(x)
                with _same_buffers(self.flat.module):
                    return as_value(self._call())
            one = self.flat.unflatten(x, self._device, self._dtype)
            inner = {"module." + name: tensor for name, tensor in one.items()}
            return as_value(functional_call(self._call, inner | self._fixed(), ()))

    def _rows(self) -> int:
        """Return how many candidates are evaluated at once; 0: one, in place."""
        if self.mode == "in_place":
            return 0
        if self._chunk is None:
            place = self._device or self.flat.device
            free = memory.available_bytes()
            if place.type == "cuda":
                free = min(free, torch.cuda.mem_get_info(place)[0])
            candidate = _COPIES * self.flat.n * self._wide.itemsize
            fitting = int(free * _SHARE_FOR_BATCH) // candidate
            as_it_is = self._device is None and self._dtype is None
            if fitting == 0 and self.mode == "auto" and as_it_is:
                self.mode = "in_place"
                return 0
            self._chunk = max(1, fitting)
        return self._chunk

    def _values_in_place(self, points: Any) -> list[Any]:
        """Return the losses; each candidate is written into the module, the last one stays."""
        found = []
        for row in range(len(points)):
            self.flat.write(points[row])
            with _same_buffers(self.flat.module), self._watched(row):
                found.append(to_numpy(self._call()))
        return found

    @contextlib.contextmanager
    def _watched(self, row: int) -> Iterator[None]:
        """Raise if the first candidate's loss draws random numbers that were not allowed."""
        before = self._random_state() if row == 0 and self._randomness == "error" else None
        yield
        if before is not None and not torch.equal(before, self._random_state()):
            raise _draws_random_numbers()

    def _moved(self, rows: Any) -> tuple[Any, Any, Any]:
        """Return a chunk in memory of our own, and where it goes."""
        if isinstance(rows, torch.Tensor):
            return rows, self._device, self._dtype
        if len(self._buffer) < len(rows):
            place = self._device or self.flat.device
            self._buffer = torch.empty(
                (len(rows), self.flat.n), dtype=self._wide, pin_memory=place.type == "cuda"
            )
        buffer = self._buffer[: len(rows)]
        buffer.numpy()[...] = rows
        return buffer, self._device, self._dtype

    def _fixed(self) -> dict[str, torch.Tensor]:
        """Return what is not searched: frozen parameters and copies of the buffers."""
        module, searched = self.flat.module, set(self.flat.names)
        fixed = {name: p for name, p in module.named_parameters() if name not in searched}
        fixed |= {name: b.clone() for name, b in module.named_buffers()}
        return {
            "module." + name: tensor.to(
                self._device or tensor.device,
                (self._dtype if tensor.is_floating_point() else None) or tensor.dtype,
            )
            for name, tensor in fixed.items()
        }

    def values_of(self, candidates: dict[str, torch.Tensor]) -> list[Any]:
        """Return what the loss returns for candidates by the module's own names, one row each."""
        inner = {"module." + name: tensor for name, tensor in candidates.items()}
        if self.mode != "loop":
            try:
                fixed = self._fixed()
                every = vmap(
                    lambda one: functional_call(self._call, one | fixed, ()),
                    randomness=self._randomness,
                )
                values = every(inner)
                self.mode = "vmap"
                return list(to_numpy(values))
            except (RuntimeError, ValueError) as error:
                self._explain(error)
                reason = _first_sentence(error)
                self.mode = "loop"
                warn_user(
                    "the candidates are evaluated one after the other, because vmap does not "
                    f"support the loss ({reason})",
                    LoopWarning,
                )
        count = len(next(iter(inner.values())))
        found = []
        for row in range(count):
            one = {name: tensor[row] for name, tensor in inner.items()}
            with self._watched(row):
                found.append(functional_call(self._call, one | self._fixed(), ()))
        return [to_numpy(value) for value in found]

    def _random_state(self) -> torch.Tensor:
        place = self._device or self.flat.device
        return torch.cuda.get_rng_state(place) if place.type == "cuda" else torch.get_rng_state()

    def _explain(self, error: RuntimeError | ValueError) -> None:
        """Raise an error that tells what to do, unless the loop can help."""
        text = str(error)
        if "randomness error mode" in text:
            raise _draws_random_numbers() from error
        if "atch norm" in text and self._training:
            raise RuntimeError(
                "a module with batch normalization in training mode would change its running "
                "statistics with every candidate: leave training=False, or set "
                "track_running_stats=False, or use mode='loop'"
            ) from error
        if not self._may_loop or not any(mark in text for mark in _NOT_FOR_VMAP):
            raise error


class _LossOf(torch.nn.Module):
    """The loss as a module around the module, so that the loss sees it with replaced parameters."""

    def __init__(self, module: torch.nn.Module, loss: Loss):
        super().__init__()
        self.module = module
        self._loss = (loss,)  # in a tuple, or a loss that is a module became part of this one
        self.arguments: tuple[Any, ...] = ()

    def forward(self) -> Any:
        return self._loss[0](self.module, *self.arguments)


@contextlib.contextmanager
def _same_buffers(module: Any) -> Iterator[None]:
    """Let the buffers of a module be as before, also where the loss raises."""
    before = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        for buffer, kept in before:
            buffer.copy_(kept)


@contextlib.contextmanager
def _as_it_was(module: torch.nn.Module, training: bool) -> Iterator[None]:
    """Put a module into evaluation mode unless `training`; restore each submodule's mode after."""
    before = [(part, part.training) for part in module.modules()]
    if not training:
        module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


def _draws_random_numbers() -> ValueError:
    return ValueError(
        "the loss draws random numbers (dropout, a minibatch?), so its values would be noisy: "
        "draw them in advance, or allow them with randomness='different' or 'same'"
    )


def _first_sentence(error: Exception) -> str:
    return str(error).partition(". ")[0].partition("\n")[0]
