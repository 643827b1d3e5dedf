"""Rm-ES and R1-ES (Li and Zhang 2018): a low-rank model of stored paths, or of the current one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mmes.base.arrays import Indices
from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.kernels import Handle, StepLaw
from mmes.strategies.parts.archive import Archive, claim_row
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    damping_option,
    directed_law,
    mirrored_option,
    powers,
    rate_option,
    value_or,
)
from mmes.strategies.parts.search_base import SearchBase, SearchState
from mmes.strategies.parts.step_size import RSR, Evidence, StepState, adapt_sigma
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

_RANK_ONE_OPTIONS = (
    POPULATION_SIZE,
    rate_option(
        "c_cov",
        "Weight of the newest path in the covariance.",
        "1 / (3 sqrt n + 5)",
        below_one=True,
    ),
    rate_option("c_c", "Learning rate of the evolution path.", "2 / (n + 7)", symbol="c"),
    mirrored_option(False),
    damping_option(),
)
_OPTIONS = (
    *_RANK_ONE_OPTIONS,
    Option("archive_size", int, "Stored paths.", default=2, symbol="m", low=1),
    Option(
        "spacing",
        int,
        "Intended distance between stored paths, in generations.",
        symbol="T",
        default_text="n",
        low=1,
    ),
)


@dataclass
class State(SearchState):
    """What the strategy carries from one generation to the next, with the symbols of the paper."""

    path: Handle  # p: evolution path, zero at the start
    archive: Archive  # P_i, t_i: stored paths with the generations they are of
    step: StepState = field(default_factory=StepState)  # s, F: state of the rank-based success rule


class RmSearch(SearchBase[State]):
    """Rm-ES: y ~ N(0, (1-c)^m I + c sum_i (1-c)^(m-i) P_i P_i'), P_m the newest path."""

    label: ClassVar[str] = "Rm-ES"
    options: ClassVar = _OPTIONS
    needs_start_value: ClassVar = True

    def __init__(self, setup: Setup, options: dict[str, Any]):
        n, kernel = setup.n, setup.kernel
        super().__init__(setup, options)
        p = self.population
        self.archive_size: int = options.get("archive_size", 1)  # m
        self.spacing: int = value_or(options.get("spacing"), n)  # T
        self.c_cov = value_or(options["c_cov"], 1 / (3 * math.sqrt(n) + 5))
        self.c_c = value_or(options["c_c"], 2 / (n + 7))  # c
        self.rule = RSR(p.weights, options["damping"])  # c_sigma = 0.3, q* = 0.3
        self._former: tuple[Any, Any] | None = None  # of the archive, once a step is begun
        self.state = State(
            setup.mean,
            setup.sigma,
            path=kernel.vector(n),
            archive=Archive.empty(self.archive_size, n, kernel),
            scale=setup.scale,
        )

    @classmethod
    def vectors(cls, n: int, options: dict[str, Any]) -> tuple[int, int]:
        return 3, options.get("archive_size", 1)

    def law(self, generation: int) -> StepLaw:
        """Return the law of y = (1-c)^(m/2) z + sqrt(c) sum_i (1-c)^((m-i)/2) r_i P_i."""
        state, p = self.state, self.population
        newest_first = state.archive.order[::-1]
        used = newest_first.size
        return directed_law(
            self._kernel.normals(
                p.draws * used, self._seed, Stream.MIXTURE_FACTOR, generation
            ).reshape(p.draws, used),
            newest_first,
            self.c_cov * powers(1 - self.c_cov, used),
            (1 - self.c_cov) ** self.archive_size,
            state.scale,
        )

    def directions(self) -> Handle:
        return self.state.archive.vectors

    def begin(self, population: Handle, ranking: Handle, generation: int) -> None:
        """Begin `update` ahead of the values; it follows, or `give_up` where all failed."""
        archive = self.state.archive
        self._former = archive.order.copy(), archive.stamps.copy()
        self._move(population, np.arange(self.population.mu), generation, ranking)

    def give_up(self) -> None:
        """Take back what was begun: no value is a number, so that no vector has moved."""
        if self._former is not None:
            self.state.archive.order, self.state.archive.stamps = self._former
            self._former = None

    def update(self, population: Handle, ranking: Indices, values: Vector, generation: int) -> None:
        """Take in an evaluated generation."""
        state = self.state
        if self._former is None:
            self._move(population, ranking[: self.population.mu], generation)
        self._former = None
        # sigma <- sigma exp(s / d), by the rank-based success rule.
        adapt_sigma(state, self.rule, Evidence(values[ranking]))

    def _move(
        self,
        population: Handle,
        parents: Indices,
        generation: int,
        on_device: Handle | None = None,
    ) -> None:
        state = self.state
        # Memory: the smallest i >= 2 with minimal t_i - t_{i-1} makes room; the oldest if that
        # minimum exceeds T.
        row = claim_row(state.archive, self.spacing, generation)
        # m <- sum_k w_k x_(k);
        # p <- (1 - c) p + sqrt(c (2 - c) mu_eff) (m - m_old) / sigma;
        # P_m = p.
        stored = self._kernel.row(state.archive.vectors, row)
        self.recombine_along(population, parents, (state.path, self.c_c), stored, on_device)


class R1Search(RmSearch):
    """R1-ES: y ~ N(0, (1-c) I + c p p'), Rm-ES with the current path as its only one."""

    label: ClassVar[str] = "R1-ES"
    options: ClassVar = _RANK_ONE_OPTIONS


class RmES(AskTell):
    """Rm-ES, the evolution strategy with a rank-m model (Li and Zhang 2018), m = 2 by default.

    Parameters are those of `AskTell`; `RmES.option_table()` lists the options.
    """

    name = "rm-es"
    search_type = RmSearch


class R1ES(AskTell):
    """R1-ES, the evolution strategy with a rank-one model (Li and Zhang 2018).

    Parameters are those of `AskTell`; `R1ES.option_table()` lists the options.
    """

    name = "r1-es"
    search_type = R1Search
