"""Small PyTorch modules, and their losses computed the plain way."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from mmes.integrations.torch import FlatParameters

X = torch.linspace(-1, 1, 24).reshape(8, 3)
Y = X.sum(1, keepdim=True).sin()


def net(*, kind: Any = torch.float32) -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).to(kind)


def loss(model: Any) -> Any:
    return (model(X) - Y).square().mean()


def candidates(flat: FlatParameters, count: int = 6, step: float = 0.1) -> Any:
    steps = np.random.default_rng(1).normal(size=(count, flat.n))
    points = flat.x0 + step * steps
    points.flags.writeable = False
    return points


def one_by_one(flat: FlatParameters, points: Any, loss: Any = loss) -> list[float]:
    """Return the losses by writing each candidate into the module: what must come out."""
    before = flat.x0
    values = []
    for point in points:
        flat.write(point)
        values.append(float(torch.as_tensor(loss(flat.module)).detach()))
    flat.write(before)
    return values
