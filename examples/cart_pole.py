"""Learn to swing up a pole on a cart: a policy trained without gradients on a batched simulator.

    python examples/cart_pole.py [--small]

Needs torch (``pip install 'mmes[torch]'``). The simulator is a few lines of torch and moves 4096
carts at a time: all candidates of a generation, each in many episodes. The batch of a generation is
where its episodes start, the same for all its candidates, so that luck with the start decides
nothing. Episodes that no generation has seen are the validation. The policy has 1e5 weights.

On a GPU this takes under a minute; ``--small`` is a policy for a CPU, and takes less than that
there.
"""

from __future__ import annotations

import argparse
import math
import time

import torch

import mmes

CARTS = 4096  # that move at a time
GRAVITY, CART, POLE, HALF_LENGTH = 9.8, 1.0, 0.1, 0.5
FORCE, TRACK, STEP = 10.0, 2.4, 0.02


class Policy:
    """Networks with two hidden layers, one for each candidate.

    They see position, speed, sine and cosine of the angle, and its speed; the answer is a force.
    """

    def __init__(self, width: int):
        self.shapes = [(6, width), (width + 1, width), (width + 1, 1)]
        self.n = sum(rows * columns for rows, columns in self.shapes)

    def start(self, device: str) -> torch.Tensor:
        """Return random weights."""
        random = torch.Generator().manual_seed(1)
        parts = [torch.randn(s, generator=random) / math.sqrt(s[0]) for s in self.shapes]
        return torch.cat([part.flatten() for part in parts]).to(device)

    def layers(self, points: torch.Tensor) -> list[torch.Tensor]:
        """Return the matrices of each candidate."""
        parts = points.split([rows * columns for rows, columns in self.shapes], dim=1)
        return [p.view(-1, *s) for p, s in zip(parts, self.shapes, strict=True)]

    @staticmethod
    def forces(layers: list[torch.Tensor], seen: torch.Tensor) -> torch.Tensor:
        """Return the forces on carts, of each candidate in each episode."""
        for layer in layers:
            seen = torch.tanh(torch.baddbmm(layer[:, -1:], seen, layer[:, :-1]))
        return FORCE * seen[..., 0]


def rewards(
    policy: Policy, points: torch.Tensor, starts: torch.Tensor, steps: int = 300
) -> torch.Tensor:
    """Return the mean reward of each candidate: 1 while the pole is upright, 0 while it hangs.

    A cart that leaves its track gets nothing any more.
    """
    layers = policy.layers(points)
    shape = (len(points), len(starts))
    place, speed, angle, turning = (starts[:, i].expand(shape) for i in range(4))
    alive = torch.ones(shape, device=points.device)
    total = torch.zeros(shape, device=points.device)
    mass = CART + POLE
    for _ in range(steps):
        sine, cosine = torch.sin(angle), torch.cos(angle)
        seen = torch.stack([place, speed, sine, cosine, turning], dim=-1)
        pushed = policy.forces(layers, seen) + POLE * HALF_LENGTH * turning**2 * sine
        turn = (GRAVITY * sine - cosine * pushed / mass) / (
            HALF_LENGTH * (4 / 3 - POLE * cosine**2 / mass)
        )
        speed = speed + STEP * (pushed - POLE * HALF_LENGTH * turn * cosine) / mass
        turning = turning + STEP * turn
        place, angle = place + STEP * speed, angle + STEP * turning
        alive = alive * (place.abs() < TRACK)
        total = total + alive * (1 + cosine) / 2
    return total.mean(1) / steps


class Starts:
    """Where episodes start, by the number of the generation: the pole hangs, all else is random."""

    def __init__(self, episodes: int, seed: int, device: str):
        self.episodes, self.seed, self.device = episodes, seed, device

    def __call__(self, generation: int) -> torch.Tensor:
        random = torch.Generator().manual_seed(self.seed * 1_000_000 + generation)
        states = 0.2 * torch.randn(self.episodes, 4, generator=random)
        states[:, 2] += math.pi
        return states.to(self.device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--small", action="store_true", help="a policy for a CPU")
    parser.add_argument("--sigma0", type=float, default=0.05)
    parser.add_argument("--evaluations", type=int)
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    policy = Policy(16 if given.small else 312)
    carts = 256 if given.small else CARTS
    evaluations = given.evaluations or (2000 if given.small else 20_000)
    start = policy.start(device)
    candidates = 4 + int(3 * math.log(policy.n)) + 2  # the default, and two probes
    tested = Starts(256, seed=9, device=device)(0)
    print(f"{policy.n:,} weights, about {carts // candidates} episodes for each candidate")

    def loss(points: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        return -rewards(policy, points.float(), starts)

    def validation(x: torch.Tensor) -> float:
        return -float(rewards(policy, x[None].float(), tested))

    def show(progress: object) -> None:
        if progress.generation % 50 == 0:  # type: ignore[attr-defined]
            print(f"  {progress}, reward {-progress.validation:.3f}")  # type: ignore[attr-defined]

    began = time.perf_counter()
    result = mmes.minimize(
        loss,
        start,
        given.sigma0,
        vectorized=True,
        batches=Starts(carts // candidates, seed=1, device=device),
        validation=validation,
        max_evaluations=evaluations,
        seed=1,
        callback=show,
        device=device,
    )
    print(f"reward {-validation(start):.3f} before, {-result.fun:.3f} after, of at most 1")
    print(f"{result.nfev:,} evaluations in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
