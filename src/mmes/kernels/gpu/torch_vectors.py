"""Vectors of the torch kernel: memory on a device, arithmetic, and boxes."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.base import memory, randomness
from mmes.kernels.gpu.torch_boxes import DeviceBox
from mmes.spaces.boxes import Box, BoxCode

# Numbers of a tile: rows times coordinates.
TILE = 2**21
_DTYPES = {
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


class TorchVectors:
    """Vectors on a device: their memory, arithmetic with them, and boxes; see `Kernel`.

    Candidates are ``"float32"`` or ``"float64"``; None takes float32 on an accelerator, float64 on
    the CPU. The same for means, paths and scales, where None takes float64.
    """

    def __init__(
        self, device: str, population_dtype: str | None = None, mean_dtype: str | None = None
    ):
        self.place = _usable_device(device)
        self.device = str(self.place)
        default = "float64" if self.place.type == "cpu" else "float32"
        self.population_type = _DTYPES[population_dtype or default]
        self.vector_type = _DTYPES[mean_dtype or "float64"]
        self.entry_bytes = self.population_type.itemsize
        self.vector_bytes = self.vector_type.itemsize
        self._typical = torch.empty(0, dtype=self.population_type, device=self.place)
        self._box: tuple[Box, DeviceBox] | None = None

    @property
    def name(self) -> str:
        """See `Kernel.name`."""
        return f"torch on {self.device}"

    def available_bytes(self) -> int:
        """See `Kernel.available_bytes`."""
        if self.place.type != "cuda":
            return memory.available_bytes()
        free, _ = torch.cuda.mem_get_info(self.place)
        kept = torch.cuda.memory_reserved(self.place) - torch.cuda.memory_allocated(self.place)
        return free + kept

    # Memory

    def vector(self, n: int) -> torch.Tensor:
        """See `Kernel.vector`."""
        return torch.zeros(n, dtype=self.vector_type, device=self.place)

    def directions(self, m: int, n: int, dtype: str = "float32") -> torch.Tensor:
        """See `Kernel.directions`."""
        return torch.zeros((m, n), dtype=_DTYPES[dtype], device=self.place)

    def population(self, rows: int, n: int) -> torch.Tensor:
        """See `Kernel.population`; torch keeps the memory of those that nobody holds any more."""
        try:
            return self._typical.new_empty((rows, n))
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"{memory.in_words(self.entry_bytes * rows * n)} for {rows} candidates of {n} "
                f"variables do not fit on {self.device}: delete earlier candidates before the "
                "next ask, or set rows_at_once or a smaller archive_size or population_size. "
                "The state is unchanged"
            ) from error

    def from_host(self, array: NDArray[Any]) -> torch.Tensor:
        """See `Kernel.from_host`."""
        return torch.tensor(array, dtype=self.vector_type, device=self.place)

    def to_host(self, handle: torch.Tensor) -> NDArray[Any]:
        """See `Kernel.to_host`; numpy has no bfloat16."""
        here = handle.cpu()
        return (here.to(torch.float32) if here.dtype == torch.bfloat16 else here).numpy()

    def copy(self, vector: torch.Tensor) -> torch.Tensor:
        """See `Kernel.copy`."""
        return vector.clone()

    def assign(self, target: torch.Tensor, source: torch.Tensor | NDArray[Any]) -> None:
        """See `Kernel.assign`."""
        if isinstance(source, torch.Tensor):
            target.copy_(source)
        elif source.ndim == 1:
            target.copy_(torch.tensor(source))
        else:  # an archive, which may fill half of the host's memory
            for row, entries in zip(target, source, strict=True):
                row.copy_(torch.tensor(entries))

    def row(self, rows: torch.Tensor, index: int) -> torch.Tensor:
        """See `Kernel.row`."""
        return rows.select(0, index)

    def part(self, rows: torch.Tensor, start: int, stop: int | None = None) -> torch.Tensor:
        """See `Kernel.part`."""
        return rows[start:stop]

    def gathered(self, rows: torch.Tensor, index: NDArray[np.intp]) -> torch.Tensor:
        """See `Kernel.gathered`."""
        return rows[torch.tensor(index, device=self.place)]

    def writes(self, rows: torch.Tensor) -> int:
        """See `Kernel.writes`; torch counts them."""
        return rows._version

    def ranked(self, values: Any, count: int, n: int) -> torch.Tensor | None:
        """See `Kernel.ranked`; nothing is done ahead."""
        return None

    def fetched(self, values: Any) -> Any:
        """See `Kernel.fetched`; values are converted elsewhere."""
        return values

    def readonly_view(self, handle: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        """See `Kernel.readonly_view`; a tensor cannot be made read-only."""
        return handle if handle.shape == shape else handle.view(shape)

    # Arithmetic

    def dot(self, a: torch.Tensor, b: torch.Tensor) -> float:
        """See `Kernel.dot`."""
        if a.dtype == b.dtype == torch.float64:
            return float(torch.dot(a, b))
        total = torch.zeros((), dtype=torch.float64, device=self.place)
        for first, last in tiles(a.shape[0], 1):
            total += torch.dot(*(x[first:last].to(torch.float64) for x in (a, b)))
        return float(total)

    def largest(self, vector: torch.Tensor) -> float:
        """See `Kernel.largest`."""
        low, high = torch.aminmax(vector)
        return float(torch.maximum(-low, high))

    def blend(self, target: torch.Tensor, decay: float, gain: float, source: torch.Tensor) -> None:
        """See `Kernel.blend`."""
        target.mul_(decay).add_(source, alpha=gain)

    def multiply(self, target: torch.Tensor, factors: torch.Tensor) -> None:
        """See `Kernel.multiply`."""
        target.mul_(factors)

    def divide(self, target: torch.Tensor, divisors: torch.Tensor) -> None:
        """See `Kernel.divide`."""
        target.div_(divisors)

    # Boxes and tiles

    def confine(self, image: torch.Tensor, points: torch.Tensor, box: Box) -> None:
        """See `Kernel.confine`."""
        image, points = torch.atleast_2d(image), torch.atleast_2d(points)
        if box.code is BoxCode.OWN:
            for target, point in zip(image, points, strict=True):
                target.copy_(self.from_host(box.map_points(self.to_host(point))))
        else:
            there = self.device_box(box)
            for target, point in zip(image, points, strict=True):
                target.copy_(there.map_points(point))

    def device_box(self, box: Box) -> DeviceBox:
        """Return the box on this device; the last one asked for is kept."""
        if self._box is None or self._box[0] is not box:
            self._box = box, DeviceBox.of(box, self.place, self.population_type)
        return self._box[1]

    def wide_tiles(self, n: int, rows: int) -> Iterator[tuple[int, int]]:
        """Yield spans of the coordinates, few of them on a GPU, where each costs launches."""
        return tiles(n, rows, TILE if self.place.type == "cpu" else 8 * TILE)

    def tensor(self, array: NDArray[Any]) -> torch.Tensor:
        """Return a small array on the device."""
        return torch.tensor(array, device=self.place)


def tiles(n: int, rows: int, tile: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield spans of the coordinates, each beginning at a chunk of random words."""
    width = max((tile or TILE) // rows // randomness.CHUNK, 1) * randomness.CHUNK
    for first in range(0, n, width):
        yield first, min(first + width, n)


def _usable_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            "device must be a string that torch can use here, such as 'cuda' or 'cpu', "
            f"not {name!r}: {reason}"
        ) from None
    return device
