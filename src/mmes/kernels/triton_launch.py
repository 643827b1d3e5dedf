"""Starting compiled Triton kernels without the checks that Triton makes at every call."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import torch

Grid = tuple[int, ...]


class Launcher:
    """Keeps what Triton compiled, by what it was compiled for.

    Triton looks at every argument in Python at each call, which takes longer than a small
    generation. What it looks at is the key here: types, alignment, and divisibility by 16.
    """

    def __init__(self) -> None:
        self._compiled: dict[Any, Any] = {}

    def __call__(
        self, kernel: Any, grid: Grid, arguments: tuple[Any, ...], warps: int, **constants: Any
    ) -> None:
        """Run a kernel; `constants` come in the order of its parameters, after `arguments`."""
        key = kernel, warps, *map(_kind, arguments), *constants.values()
        found = self._compiled.get(key)
        if found is None:
            # In Triton's interpreter this is None, and stays so.
            self._compiled[key] = kernel[grid](*arguments, **constants, num_warps=warps)
        else:
            stream = torch.cuda.current_stream(arguments[0].device).cuda_stream
            # What Triton's own call ends in, without its hooks.
            found.run(
                *(*grid, 1, 1)[:3],
                stream,
                found.function,
                found.packed_metadata,
                None,
                None,
                None,
                *arguments,
                *constants.values(),
            )


def _kind(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.data_ptr() % 16 == 0
    return argument == 1, argument % 16 == 0, argument < 2**31
