"""Train a small convolutional network without gradients, on the GPU if there is one.

    python examples/torch_network.py

Needs torch (``pip install 'mmes[torch]'``). The images are generated: noisy stripes in four
directions. All candidates of a generation are evaluated at once, and neither they nor the state of
the search leave the device. Takes under two minutes on a CPU.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.func import functional_call, vmap

import mmes

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZE, CLASSES = 12, 4


def images(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images of stripes in noise, and the direction of the stripes of each."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % CLASSES
    angle = labels * (math.pi / CLASSES) + 0.2 * torch.randn(count, generator=random)
    phase = 2 * math.pi * torch.rand(count, generator=random)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    along = torch.cos(angle)[:, None, None] * x + torch.sin(angle)[:, None, None] * y
    stripes = torch.sin(1.3 * along + phase[:, None, None])
    noisy = stripes + 0.7 * torch.randn(count, SIZE, SIZE, generator=random)
    return noisy.unsqueeze(1).to(DEVICE), labels.to(DEVICE)


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Flatten(),
        nn.Linear(6 * 2 * 2, CLASSES),
    ).to(DEVICE)


def main() -> None:
    torch.manual_seed(1)
    net = network()
    shapes = {name: p.shape for name, p in net.named_parameters()}
    start = torch.cat([p.detach().flatten() for p in net.parameters()])
    train, test = images(256, seed=1), images(1000, seed=2)

    def parameters(flat: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = flat.split([shape.numel() for shape in shapes.values()])
        return {name: p.view(s) for (name, s), p in zip(shapes.items(), parts, strict=True)}

    def loss(flat: torch.Tensor) -> torch.Tensor:
        answers = functional_call(net, parameters(flat), (train[0],))
        return nn.functional.cross_entropy(answers, train[1])

    def accuracy(flat: torch.Tensor, data: tuple[torch.Tensor, torch.Tensor]) -> float:
        answers = functional_call(net, parameters(flat), (data[0],))
        return float((answers.argmax(1) == data[1]).float().mean())

    def watch(p: mmes.Progress) -> None:
        if p.generation % 100 == 0:
            print(f"{p.evaluations:6d} evaluations: loss {p.best_value:.4f}", flush=True)

    print(
        f"{start.numel()} parameters on {DEVICE}; at the start: {accuracy(start, test):.1%} right"
    )
    r = mmes.minimize(
        vmap(loss),
        start,
        0.1,
        strategy="adaptive",
        vectorized=True,
        max_evaluations=10_000,
        target=0.02,
        callback=watch,
        seed=1,
    )
    print(f"after {r.nfev} evaluations in {r.time:.0f} s on {r.kernel}: loss {r.fun:.4f}, ", end="")
    print(f"{accuracy(r.mean.float(), test):.1%} of 1000 new images right")


if __name__ == "__main__":
    main()
