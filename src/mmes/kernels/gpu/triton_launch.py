"""Getting work to a GPU with little Python: kernels started from a cache, or as recorded graphs.

At n = 1e4 the GPU needs 20 microseconds per generation; what is saved here is most of the rest.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import functools
import operator
from typing import Any, NamedTuple

import torch

from mmes.kernels.gpu.triton_mail import Upload, index_of

# Work that was the same so many times is recorded, and this much is remembered.
USUAL = 3
REMEMBERED = 64


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

    But for the first tensor of its last kernel, the population: that may be large, and its address
    belongs to the key.
    """

    def __init__(self, graph: torch.cuda.CUDAGraph, launches: tuple[Launch, ...]):
        self.graph = graph
        *earlier, last = launches
        self.held = [launch.tensors for launch in earlier], last.tensors[1:]


class Launcher:
    """Keeps what Triton compiled, by what it was compiled for, and records work that comes again.

    Triton looks at every argument in Python at each call, which takes longer than a small
    generation. What it looks at is the key here: types and alignment of tensors, and the integers.
    """

    def __init__(self, device: torch.device) -> None:
        self._index = index_of(device)
        self._records = device.type == "cuda"
        self._compiled: dict[Any, Any] = {}
        # By key: a recording, or how often that work came.
        self.recorded: dict[Any, Any] = {}

    def __call__(self, upload: Upload | None, *launches: Launch, key: Any = None) -> None:
        """Send numbers and start kernels, one after the other; those of a key may be recorded.

        The same key must stand for the same kernels, the same memory of the numbers and the same
        contents of memory that is only read, until `forget`.
        """
        self._send_and_start(upload, launches)
        if upload is not None:
            upload.sent()
        if key is None or not self._records:
            return
        times = self.recorded.pop(key, 0) + 1
        self.recorded[key] = self._recording(upload, launches) if times == USUAL else times
        if len(self.recorded) > REMEMBERED:
            del self.recorded[next(iter(self.recorded))]

    def replayed(self, upload: Upload | None, key: Any) -> bool:
        """Send and start what a key stands for as one CUDA graph; false if it is not recorded."""
        recording = self.recorded.get(key, 0)
        if type(recording) is int:
            return False
        if self._index < 0 or torch._C._cuda_getDevice() == self._index:
            recording.graph.replay()
        else:
            with torch.cuda.device(self._index):
                recording.graph.replay()
        if upload is not None:
            upload.sent()
        return True

    def forget(self) -> None:
        """Drop what was recorded: it is about other memory."""
        self.recorded.clear()

    def _send_and_start(self, upload: Upload | None, launches: tuple[Launch, ...]) -> None:
        if upload is not None:
            upload.send()
        for launch in launches:
            self._start(launch)

    def _recording(self, upload: Upload | None, launches: tuple[Launch, ...]) -> _Recording | int:
        """Record kernels that were compiled before; nothing runs meanwhile."""
        graph = torch.cuda.CUDAGraph()
        with _current(self._index), torch.cuda.stream(torch.cuda.Stream()):
            try:
                # Other threads may use the GPU as they like.
                graph.capture_begin(capture_error_mode="thread_local")
                self._send_and_start(upload, launches)
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
        types = tuple([tensor.dtype for tensor in launch.tensors])
        key = id(launch.kernel), launch.warps, types, aligned, fixed
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


_HERE = contextlib.nullcontext()


def _current(index: int) -> Any:
    """Return a context in which this GPU is the current one, as Triton and graphs want it."""
    if index < 0 or torch._C._cuda_getDevice() == index:
        return _HERE
    return torch.cuda.device(index)
