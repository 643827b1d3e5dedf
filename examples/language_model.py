"""Tune a small transformer without gradients, with minibatches and validation.

    python examples/language_model.py [--small] [--loss errors] [--sigma0 0.003]

Needs torch (``pip install 'mmes[torch]'``). A character-level language model is first trained by
gradients on Python sources, those of Python itself. Then it is tuned on another kind of text, the
C and C++ headers of Python and PyTorch, by evolution: each generation sees the next batch, and the
loss on held-out text decides which mean is kept. ``--loss errors`` tunes the share of characters
that are predicted wrongly, which has no gradient.

The model has 4.9 million parameters. On a GPU this takes a minute; ``--small`` is a model for a
CPU, and takes less than that there.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from mmes.integrations.precision import LowPrecisionWarning
from mmes.integrations.torch import minimize_module

SYMBOLS = 128  # of ASCII; all others count as one
PIECE, HELD_OUT = 10_000, 20  # every twentieth piece of a text is held out
Batch = tuple[torch.Tensor, torch.Tensor]
Loss = Callable[[nn.Module, Batch], torch.Tensor]


class Block(nn.Module):
    """Causal attention and a layer of neurons, each added to what it sees."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.three = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.neurons = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.three(self.before(x)).split(width, 2)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.neurons(self.between(x))


class Transformer(nn.Module):
    """Predicts the next character at each place of a text."""

    def __init__(self, width: int, layers: int, heads: int, length: int):
        super().__init__()
        self.length = length
        self.symbols = nn.Embedding(SYMBOLS, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.answer = nn.Linear(width, SYMBOLS, bias=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.symbols(text) + self.places.weight[: text.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.answer(self.norm(x))


def entropy(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Return the cross entropy per character, in nats."""
    return functional.cross_entropy(model(batch[0]).flatten(0, 1).float(), batch[1].flatten())


def errors(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Return the share of characters that are not the most likely one; it has no gradient."""
    return (model(batch[0]).argmax(-1) != batch[1]).float().mean()


LOSSES = {"entropy": entropy, "errors": errors}


def files(suffix: str, folders: Iterable[Path]) -> Iterator[bytes]:
    for folder in folders:
        for path in sorted(folder.rglob(f"*{suffix}")):
            yield path.read_bytes()


def text(suffix: str, limit: int, device: str) -> torch.Tensor:
    """Return characters of the files with this suffix that come with Python and PyTorch."""
    paths = sysconfig.get_paths()
    own = Path(torch.__file__).parent
    folders = [Path(paths["stdlib"])] if suffix == ".py" else [Path(paths["include"]), own]
    found = bytearray()
    for part in files(suffix, folders):
        found += part
        if len(found) >= limit:
            break
    if len(found) < HELD_OUT * PIECE:
        raise SystemExit(f"there are too few {suffix} files in {', '.join(map(str, folders))}")
    codes = np.frombuffer(bytes(found[:limit]), np.uint8)
    codes = np.where(codes < SYMBOLS, codes, SYMBOLS - 1)
    return torch.from_numpy(codes.astype(np.int64)).to(device)


class Windows:
    """Batches of a text by their number: the same number always gives the same batch."""

    def __init__(self, text: torch.Tensor, length: int, count: int, seed: int):
        self.text, self.length, self.count, self.seed = text, length, count, seed

    def __call__(self, number: int) -> Batch:
        random = torch.Generator().manual_seed(self.seed * 1_000_000 + number)
        last = self.text.numel() - self.length - 1
        first = torch.randint(0, last, (self.count, 1), generator=random).to(self.text.device)
        seen = self.text[first + torch.arange(self.length + 1, device=self.text.device)]
        return seen[:, :-1].contiguous(), seen[:, 1:].contiguous()


def split(text: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the text to learn from and the text held out."""
    pieces = text[: text.numel() // PIECE * PIECE].view(-1, PIECE)
    held_out = torch.arange(len(pieces), device=text.device) % HELD_OUT == 0
    return pieces[~held_out].flatten(), pieces[held_out].flatten()


def train(net: nn.Module, windows: Windows, steps: int, rate: float = 1e-3) -> None:
    """Train by gradients (AdamW)."""
    optimizer = torch.optim.AdamW(net.parameters(), rate, weight_decay=0.01)
    device = windows.text.device.type
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 100) * (1 - 0.9 * step / steps)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = entropy(net, windows(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class HeldOut:
    """The mean loss of a model on batches that are always the same."""

    def __init__(self, windows: Windows, batches: int, loss: Loss):
        self.batches, self.loss = [windows(number) for number in range(batches)], loss

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> float:
        return sum(float(self.loss(model, batch)) for batch in self.batches) / len(self.batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--small", action="store_true", help="a model for a CPU")
    parser.add_argument("--loss", choices=LOSSES, default="entropy")
    parser.add_argument("--sigma0", type=float, default=0.003)
    parser.add_argument("--evaluations", type=int)
    parser.add_argument("--steps", type=int, help="of training before")
    parser.add_argument("--checkpoint")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    if given.small:
        net = Transformer(32, 2, 2, 32).to(device)
        limit, steps, evaluations, sequences = 500_000, 400, 2500, 16
    else:
        net = Transformer(256, 6, 4, 256).to(device)
        limit, steps, evaluations, sequences = 20_000_000, 1500, 20_000, 16
    parameters = sum(p.numel() for p in net.parameters())
    python, _ = split(text(".py", limit, device))
    headers, held_out = split(text(".h", limit, device))
    print(f"{parameters:,} parameters; {python.numel():,} characters of Python to train on,")
    print(f"{headers.numel():,} characters of headers to tune on, {held_out.numel():,} held out")
    began = time.perf_counter()
    train(net, Windows(python, net.length, 64, seed=1), given.steps or steps)
    print(f"trained by gradients on Python in {time.perf_counter() - began:.0f} s")
    loss = LOSSES[given.loss]
    validation = HeldOut(Windows(held_out, net.length, 64, seed=9), 4, loss)
    print(f"{given.loss} on held-out headers: {validation(net):.4f}")
    began = time.perf_counter()

    def show(progress: object) -> None:
        if progress.generation % 50 == 0:  # type: ignore[attr-defined]
            print(f"  {progress}, validation {progress.validation:.4f}")  # type: ignore[attr-defined]

    with warnings.catch_warnings():
        # Many steps are lost by rounding to bfloat16; enough are not.
        warnings.simplefilter("ignore", LowPrecisionWarning)
        warnings.filterwarnings("ignore", "There is a performance drop")  # vmap on a CPU
        result = minimize_module(
            net,
            loss,
            given.sigma0,
            batches=Windows(headers, net.length, sequences, seed=3),
            validation=validation,
            max_evaluations=given.evaluations or evaluations,
            dtype=torch.bfloat16 if device == "cuda" else None,
            seed=1,
            callback=show,
            checkpoint=given.checkpoint,
        )
    print(f"tuned without gradients in {time.perf_counter() - began:.0f} s: {result.message}")
    print(f"{given.loss} on held-out headers: {validation(net):.4f} ({result.nfev:,} evaluations)")


if __name__ == "__main__":
    main()
