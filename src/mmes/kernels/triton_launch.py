"""Getting work to a GPU with little Python: small uploads, and kernels started from a cache.

At n = 1e4 the GPU needs 20 microseconds per generation; what is saved here is most of the rest.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

# Uploads before the device is waited for.
_SLOTS = 64
_SMALLEST_SLOT = 256
# Work that was the same so many times is recorded, and this much is remembered.
_USUAL = 3
_REMEMBERED = 64


class Launch(NamedTuple):
    """A kernel with its arguments: tensors, sizes and constants, in the order of its parameters.

    `sizes` are numbers that seldom change; others belong into a tensor.
    """

    kernel: Any
    grid: tuple[int, ...]
    tensors: tuple[torch.Tensor, ...]
    sizes: tuple[int, ...]
    constants: dict[str, Any]
    warps: int = 4


class _Recording:
    """A CUDA graph, with the memory that it is about.

    But for what its last kernel writes: that may be large, and its address belongs to the key.
    """

    def __init__(self, graph: torch.cuda.CUDAGraph, launches: tuple[Launch, ...]):
        self.graph = graph
        *earlier, last = launches
        self._held = [launch.tensors for launch in earlier], last.tensors[1:]


class Launcher:
    """Keeps what Triton compiled, by what it was compiled for, and records work that comes again.

    Triton looks at every argument in Python at each call, which takes longer than a small
    generation. What it looks at is the key here: the alignment of tensors, and the integers. Of
    the types, that of the first tensor is enough: the others are fixed, or follow from constants.
    """

    def __init__(self, device: torch.device) -> None:
        self._index = _index(device)
        self._records = device.type == "cuda"
        self._compiled: dict[Any, Any] = {}
        self._recorded: dict[Any, Any] = {}

    def __call__(self, *launches: Launch, key: Any = None) -> None:
        """Start kernels one after the other; those of a key are recorded for `replayed`.

        The same key must stand for the same kernels, the same numbers and the same contents of
        memory that is only read, until `forget`.
        """
        for launch in launches:
            self._start(launch)
        if key is None or not self._records:
            return
        times = self._recorded.pop(key, 0) + 1
        self._recorded[key] = self._recording(launches) if times == _USUAL else times
        if len(self._recorded) > _REMEMBERED:
            del self._recorded[next(iter(self._recorded))]

    def replayed(self, key: Any) -> bool:
        """Start the kernels of a key as one CUDA graph; false where they were not recorded."""
        recording = self._recorded.get(key, 0)
        if isinstance(recording, int):
            return False
        with _current(self._index):
            recording.graph.replay()
        return True

    def forget(self) -> None:
        """Drop what was recorded: it is about other memory."""
        self._recorded.clear()

    def _recording(self, launches: tuple[Launch, ...]) -> _Recording | int:
        """Record kernels that were compiled before; nothing runs meanwhile."""
        graph = torch.cuda.CUDAGraph()
        with _current(self._index), torch.cuda.stream(torch.cuda.Stream()):
            try:
                # Other threads may use the GPU as they like.
                graph.capture_begin(capture_error_mode="thread_local")
                for launch in launches:
                    self._start(launch)
                graph.capture_end()
            except RuntimeError:  # a driver or a tool under which there are no graphs
                self._records = False
                return 0
        return _Recording(graph, launches)

    def _start(self, launch: Launch) -> None:
        pointers = [tensor.data_ptr() for tensor in launch.tensors]
        aligned: Any = not functools.reduce(operator.or_, pointers) & 15
        if not aligned:
            aligned = tuple(pointer & 15 == 0 for pointer in pointers)
        fixed = *launch.sizes, *launch.constants.values()
        key = id(launch.kernel), launch.warps, launch.tensors[0].dtype, aligned, fixed
        found = self._compiled.get(key)
        with _current(self._index):
            if found is None:
                # In Triton's interpreter this is None, and stays so.
                self._compiled[key] = launch.kernel[launch.grid](
                    *launch.tensors, *launch.sizes, **launch.constants, num_warps=launch.warps
                )
                return
            x, y = launch.grid if len(launch.grid) == 2 else (launch.grid[0], 1)
            stream = torch._C._cuda_getCurrentRawStream(self._index)
            start = stream, found.function, found.packed_metadata, None, None, None
            # What Triton's own call ends in, without its hooks.
            found.run(x, y, 1, *start, *pointers, *fixed)


class Uploads:
    """Small arrays on their way to the device, without waiting for it.

    The memory on the host is pinned and used in turn. On the device it is one tensor: work on a
    stream is done in order, so that what was sent before is no longer needed.
    """

    def __init__(self, device: torch.device):
        self._device, self._on_gpu = device, device.type == "cuda"
        self.nothing = torch.zeros(2, dtype=torch.float64, device=device)
        self._capacity = self._next = 0
        self._pinned: list[torch.Tensor] = []
        self._slots: list[NDArray[np.int64]] = []
        self._there = self.nothing

    def slot(self, size: int) -> NDArray[np.int64]:
        """Return room for so many numbers; `send` sends them, before the next slot is taken."""
        if self._next == len(self._slots) or size > self._capacity:
            self._begin_anew(size)
        return self._slots[self._next]

    def send(self) -> torch.Tensor:
        """Return the slot on the device."""
        pinned = self._pinned[self._next]
        self._next += 1
        return self._there.copy_(pinned, non_blocking=True) if self._on_gpu else pinned

    def _begin_anew(self, size: int) -> None:
        if self._on_gpu and self._slots:
            # All memory was used once; what was sent from it first may still be on its way.
            torch.cuda.current_stream(self._device).synchronize()
        self._next = 0
        if size > self._capacity:
            self._capacity = max(_SMALLEST_SLOT, 2 * size)
            whole = torch.zeros(
                (_SLOTS, self._capacity), dtype=torch.int64, pin_memory=self._on_gpu
            )
            self._pinned, self._slots = list(whole), list(whole.numpy())
            self._there = torch.empty_like(whole[0], device=self._device)


def _index(device: torch.device) -> int:
    if device.type != "cuda":
        return -1
    return torch.cuda.current_device() if device.index is None else device.index


class _Here:
    """A context that changes nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


_HERE = _Here()


def _current(index: int) -> Any:
    """Return a context in which this GPU is the current one, as Triton and graphs want it."""
    if index < 0 or torch._C._cuda_getDevice() == index:
        return _HERE
    return torch.cuda.device(index)
