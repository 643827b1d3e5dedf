"""Numbers on their way to a GPU and back, through memory that stays where it is.

Pinned memory of the host is written or read while the GPU works. How far the GPU has come is known
from the values that arrive: they are the last of what was started.
"""
# pyright: reportMissingImports=false, reportArgumentType=false

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

_SMALLEST = 256
_HEAD = struct.Struct("=qqqdddq")
# Looks at memory while values are on their way, some 40 ns each, before the driver is asked to
# wait: that takes as long as a small generation.
_LOOKS = 10_000
# A bit pattern that no arithmetic makes, a NaN, stands for a value that has not come.
_ABSENT = {torch.float32: (np.int32, 0x7FEB_CDEF), torch.float64: (np.int64, 0x7FFC_DEAD_BEEF_0001)}


class Flow:
    """What the host knows of how far the GPU has come."""

    def __init__(self, device: torch.device):
        self.device, self.index = device, index_of(device)
        self.on_gpu = device.type == "cuda"
        self.times = 1
        """How many times all that was started was seen to be done."""
        self._stream = 0

    def started(self) -> int:
        """Take note that work was started now; return the number of times."""
        if self.on_gpu:
            self._stream = torch._C._cuda_getCurrentRawStream(self.index)
        return self.times

    def arrived(self) -> None:
        """Take note that the last of what was started on the present stream is done."""
        if not self.on_gpu or torch._C._cuda_getCurrentRawStream(self.index) == self._stream:
            self.times += 1

    def wait(self) -> None:
        """Wait until all that was started is done."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)
        self.times += 1


class Upload:
    """Numbers for a kernel: a head of seven, and as many as needed after it.

    They always go from the same memory to the same memory, so that sending them can be part of a
    recorded graph. Hence they are written only after the GPU has taken the last ones.
    """

    def __init__(self, flow: Flow):
        self._flow = flow
        self._sent = 0
        self._take(_SMALLEST)

    def _take(self, size: int) -> None:
        on_gpu = self._flow.on_gpu
        self.pinned = torch.zeros(size, dtype=torch.int64, pin_memory=on_gpu)
        self.whole: NDArray[np.int64] = self.pinned.numpy()
        self.real: NDArray[np.float64] = self.whole.view(np.float64)
        self.there = (
            torch.empty_like(self.pinned, device=self._flow.device) if on_gpu else self.pinned
        )
        self.address: int = self.there.data_ptr()

    def open(self, size: int) -> None:
        """See to it that `whole` and `real`, the same memory, have room and may be written."""
        if self._sent == self._flow.times:
            self._flow.wait()
        if size > self.whole.size:
            self._take(1 << (size - 1).bit_length())

    def head(self, seed: int, generation: int, reals: tuple[float, ...], word: int) -> None:
        """Write the head, as every kernel finds it: where random numbers are, reals, a word."""
        _HEAD.pack_into(self.whole, 0, seed & 0xFFFFFFFF, seed >> 32, generation, *reals, word)

    def send(self) -> None:
        """Send all."""
        if self._flow.on_gpu:
            self.there.copy_(self.pinned, non_blocking=True)

    def sent(self) -> None:
        """Take note that it was sent."""
        self._sent = self._flow.started()


class _Room(NamedTuple):
    """Pinned memory for values, and views of it."""

    pinned: torch.Tensor
    values: NDArray[Any]
    bits: NDArray[Any]
    words: memoryview
    absent: int


class Arrivals:
    """Values on their way from the GPU, to memory that is kept for their number and type."""

    def __init__(self, flow: Flow):
        self._flow = flow
        self._room: _Room | None = None
        self._awaited = False

    def takes(self, values: Any, count: int | None = None) -> bool:
        """Return whether these are values that lie on this GPU, and as many as that."""
        return (
            type(values) is torch.Tensor
            and values.dtype in _ABSENT
            and values.dim() == 1
            and values.get_device() == self._flow.index
            and (count is None or len(values) == count)
        )

    def awaited(self, values: torch.Tensor) -> torch.Tensor:
        """Return the memory that a kernel will write these values to, the next to be fetched."""
        room = self._room_for(values)
        room.bits.fill(room.absent)
        self._awaited = True
        return room.pinned

    def fetched(self, values: Any) -> Any:
        """Return values that lie on this GPU as a host array; anything else as it is."""
        if not self.takes(values):
            # They were computed from the candidates, as a rule: there is nothing to wait for.
            self._flow.wait()
            return values
        if not self._awaited:
            source = values.detach() if values.requires_grad else values
            self.awaited(values).copy_(source, non_blocking=True)
        self._awaited = False
        room = self._room_for(values)
        words, absent = room.words, room.absent
        for _ in range(_LOOKS):
            if words[-1] != absent:
                break
        if absent in words.tolist():
            self._flow.wait()
        else:
            self._flow.arrived()
        return room.values.astype(np.float64)

    def _room_for(self, values: torch.Tensor) -> _Room:
        room, size, dtype = self._room, len(values), values.dtype
        if room is None or room.bits.size != size or room.pinned.dtype != dtype:
            pinned = torch.empty(size, dtype=dtype, pin_memory=self._flow.on_gpu)
            kind, absent = _ABSENT[dtype]
            bits = pinned.numpy().view(kind)
            room = self._room = _Room(pinned, pinned.numpy(), bits, memoryview(bits), absent)
        return room


def index_of(device: torch.device) -> int:
    """Return the number of a GPU; -1 for what is none."""
    if device.type != "cuda":
        return -1
    return torch.cuda.current_device() if device.index is None else device.index
