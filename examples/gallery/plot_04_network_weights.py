"""
Can I train the weights of a network without gradients?
=======================================================

Yes. If gradients exist they are faster, but a loss may count errors, play a game or call a
simulator. Here a PyTorch network learns to distinguish two spirals. To keep the example short, the
loss is an ordinary one, but its gradient is never used. The optimizer sees all weights as one
vector.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from mmes.integrations.torch import FlatParameters, minimize_module

torch.manual_seed(1)
turn = torch.linspace(0.25, 1, 150) * 2.5 * np.pi
spiral = turn[:, None] * torch.stack([torch.cos(turn), torch.sin(turn)], dim=1) / 8
points = torch.cat([spiral, -spiral])
labels = torch.cat([torch.zeros(150), torch.ones(150)])

net = torch.nn.Sequential(
    torch.nn.Linear(2, 16),
    torch.nn.Tanh(),
    torch.nn.Linear(16, 16),
    torch.nn.Tanh(),
    torch.nn.Linear(16, 1),
)
print(FlatParameters(net).n, "weights")


def loss(model):
    """Return the loss of a model, which is used like the network itself."""
    score = model(points)[:, 0]
    return torch.nn.functional.binary_cross_entropy_with_logits(score, labels)


# %%
# All candidates of a generation are evaluated in one call (``torch.func.vmap``). Afterwards the
# network holds the best weights.

r = minimize_module(net, loss, sigma0=0.2, target=0.05, max_evaluations=20_000, seed=1)
with torch.no_grad():
    right = ((net(points)[:, 0] > 0) == (labels > 0.5)).float().mean()
print(f"loss {r.fun:.4f}, {100 * right:.1f} % right")

# %%
# Left: the loss against the evaluations. Right: the points of both spirals, and the side to which
# the network assigns each location.

side = torch.linspace(-1.2, 1.2, 200)
grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1)
with torch.no_grad():
    shade = torch.sigmoid(net(grid.reshape(-1, 2))).reshape(200, 200)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
left.semilogy(r.history["evaluations"], r.history["best"])
left.set(xlabel="evaluations", ylabel="loss")
right.contourf(side, side, shade, levels=20, cmap="RdBu", alpha=0.7)
right.scatter(*points.T, c=labels, cmap="RdBu", edgecolors="black", s=12, linewidths=0.4)
right.set(aspect="equal", xticks=[], yticks=[], title="what the network says")
