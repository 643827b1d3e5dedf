"""Print the polynomial coefficients of elementary.hpp: `python native/problems/coefficients.py`.

Each polynomial P interpolates its function at Chebyshev nodes, which is within a small factor of
the best polynomial of that degree. The error printed is that of the whole approximation with the
coefficients rounded to double precision. Needs mpmath; nothing else in the project does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 60
Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Approximation:
    """What P stands for, on which interval, and how the error of the whole is measured."""

    name: str
    low: mp.mpf
    high: mp.mpf
    count: int
    target: Function
    error: Callable[[mp.mpf, mp.mpf], mp.mpf]  # of x and P(x)

    def coefficients(self) -> list[float]:
        """Return the coefficients, lowest first, of the interpolating polynomial."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        angles = [(2 * i + 1) * mp.pi / (2 * self.count) for i in range(self.count)]
        nodes = [middle + half * mp.cos(angle) for angle in angles]
        powers = mp.matrix([[node**k for k in range(self.count)] for node in nodes])
        return [float(c) for c in mp.lu_solve(powers, mp.matrix(list(map(self.target, nodes))))]

    def report(self) -> str:
        """Return the coefficients and the largest error."""
        c = self.coefficients()
        grid = [self.low + (self.high - self.low) * (i + mp.mpf(1) / 3) / 400 for i in range(400)]
        worst = max(abs(self.error(x, mp.polyval([mp.mpf(a) for a in c[::-1]], x))) for x in grid)
        return f"{self.name}: error {mp.nstr(worst, 3)}\n    " + ",\n    ".join(map(repr, c))


ROOT = mp.sqrt
APPROXIMATIONS = (
    Approximation(
        "ln((1+s)/(1-s)) = 2 s + s^3 P(s^2), relative",
        mp.mpf(0),
        ((ROOT(2) - 1) / (ROOT(2) + 1)) ** 2,
        7,
        lambda w: (2 * mp.atanh(ROOT(w)) - 2 * ROOT(w)) / ROOT(w) ** 3,
        lambda w, p: (2 + w * p) * ROOT(w) / (2 * mp.atanh(ROOT(w))) - 1,
    ),
    Approximation(
        "exp(r) = 1 + r + r^2 P(r), relative",
        -mp.log(2) / 2,
        mp.log(2) / 2,
        10,
        lambda r: (mp.exp(r) - 1 - r) / r**2,
        lambda r, p: (1 + r + r**2 * p) / mp.exp(r) - 1,
    ),
    Approximation(
        "sin(r) = r + r^3 P(r^2), absolute",
        mp.mpf(0),
        (mp.pi / 2) ** 2,
        8,
        lambda w: (mp.sin(ROOT(w)) / ROOT(w) - 1) / w,
        lambda w, p: ROOT(w) * (1 + w * p) - mp.sin(ROOT(w)),
    ),
    Approximation(
        "1 - cos(2 pi r) = r^2 P(r^2), relative",
        mp.mpf(0),
        mp.mpf(1) / 16,
        9,
        lambda w: (1 - mp.cos(2 * mp.pi * ROOT(w))) / w,
        lambda w, p: w * p / (1 - mp.cos(2 * mp.pi * ROOT(w))) - 1,
    ),
)


def leading(value: mp.mpf, bits: int) -> mp.mpf:
    """Return the value cut off after so many binary places."""
    return mp.floor(value * 2**bits) / mp.mpf(2) ** bits


def main() -> None:
    """Print every table, and ln 2 and pi in parts whose products with small integers are exact."""
    for approximation in APPROXIMATIONS:
        print(approximation.report())
    high = leading(mp.log(2), 42)
    print("ln 2:", float(high).hex(), float(mp.log(2) - high).hex())
    first = leading(+mp.pi, 32)
    second = leading(mp.pi - first, 66)
    print("pi:", *(float(part).hex() for part in (first, second, mp.pi - first - second)))
    print("1/ln 2:", float(1 / mp.log(2)).hex(), " 1/pi:", float(1 / mp.pi).hex())


if __name__ == "__main__":
    main()
