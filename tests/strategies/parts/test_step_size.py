"""The step-size rules: their statistics under random selection, their directions, their bounds."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from mmes.kernels import ReferenceKernel
from mmes.strategies.isotropic_es import RULES, make_rule
from mmes.strategies.parts.population import Population
from mmes.strategies.parts.step_size import (
    CSA,
    GSR,
    PSR,
    PTA,
    RSR,
    Evidence,
    StepState,
    joint_ranks,
)

KERNEL = ReferenceKernel()
N, GENERATIONS = 40, 4000
POPULATION = Population.from_options(N, {"population_size": 12, "mirrored": False})


def random_generations(seed: int) -> np.ndarray:
    """Sorted values of generations that are all alike: no success and no failure but by chance."""
    return np.sort(np.random.default_rng(seed).random((GENERATIONS, POPULATION.size)), axis=1)


def mean_and_error(sample: list[float]) -> tuple[float, float]:
    """Mean, and five standard errors: exceeded by one seed in 1.7 million.

    Neighbouring generations share one, so that their statistics are negatively correlated; the
    plain error is too large, if anything.
    """
    return float(np.mean(sample)), 5 * float(np.std(sample)) / math.sqrt(len(sample))


def test_gsr_statistic_is_standard_at_random() -> None:
    values = random_generations(1)
    found = [GSR.statistic(f, previous) for previous, f in pairwise(values)]
    mean, error = mean_and_error(found)
    assert abs(mean) < error
    # The variance of a sample variance of normal numbers is 2/N; five standard errors.
    assert np.var(found) == pytest.approx(1.0, abs=5 * math.sqrt(2 / GENERATIONS))


def test_pta_share_is_centred_at_random() -> None:
    values, w = random_generations(2), POPULATION.weights
    found = [2 * float(w @ (f[: w.size] < p[: w.size])) - 1 for p, f in pairwise(values)]
    mean, error = mean_and_error(found)
    assert abs(mean) < error


@pytest.mark.parametrize(
    "rule", [PSR(target=0.0, c=1.0), RSR(POPULATION.weights, target=0.0, c=1.0)]
)
def test_success_of_psr_and_rsr_is_centred_at_random(rule: PSR | RSR) -> None:
    state = StepState()
    found = [math.log(rule.growth(state, Evidence(f))) for f in random_generations(3)][1:]
    mean, error = mean_and_error(found)
    assert abs(mean) < error
    assert np.std(found) > 0.01


def test_csa_path_has_unit_variance_at_random() -> None:
    rng = np.random.default_rng(4)
    rule, state = CSA(POPULATION.mu_eff, 0.3), StepState(path=np.zeros(N))
    lengths = []
    for _ in range(GENERATIONS):
        z = POPULATION.weights @ rng.standard_normal((POPULATION.mu, N))
        rule.growth(state, Evidence(np.zeros(1), lambda z=z: z, KERNEL))
        lengths.append(float(state.path @ state.path) / N)
    # Correlated over some 1/c generations: the error of the mean is sqrt(2 / (N GENERATIONS) (2 -
    # c)/c ..) < 0.012.
    assert np.mean(lengths[50:]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("name", [rule for rule in RULES if rule != "csa"])
def test_success_grows_and_failure_or_a_plateau_shrinks(name: str) -> None:
    for direction, grows in ((-1.0, True), (1.0, False), (0.0, False)):
        rule, state = make_rule(name, N, POPULATION, 1.0), StepState()
        base = np.linspace(0.0, 1.0, POPULATION.size)
        state.start(1.0, POPULATION.size)
        factors = [rule.growth(state, Evidence(base + 10.0 * direction * g)) for g in range(20)]
        assert (factors[-1] > 1) is grows, (name, direction)
        assert all(0.2 < factor < 3 for factor in factors)


def test_csa_grows_on_a_long_path_and_is_limited() -> None:
    for expected_length, z, compare in (
        (None, np.ones(N), 1),
        (None, np.zeros(N), -1),
        (math.sqrt(N), np.ones(N), 1),
        (math.sqrt(N), np.zeros(N), -1),
    ):
        rule, state = CSA(5.0, 0.5, 1.0, expected_length), StepState(path=np.zeros(N))
        factors = [
            rule.growth(state, Evidence(np.zeros(1), lambda z=z: z, KERNEL)) for _ in range(10)
        ]
        assert np.sign(math.log(factors[-1])) == compare
    far = Evidence(np.zeros(1), lambda: np.full(N, 10.0), KERNEL)
    assert CSA(1e4, 1.0).growth(StepState(path=np.zeros(N)), far) == math.e


@pytest.mark.parametrize(
    "rule", [PSR(), GSR(), RSR(POPULATION.weights), PTA(POPULATION.weights, POPULATION.mu_eff)]
)
def test_without_a_previous_generation_sigma_stays(rule) -> None:
    state = StepState()
    assert rule.growth(state, Evidence(np.arange(12.0))) == 1.0
    np.testing.assert_array_equal(state.previous, np.arange(12.0))


def test_joint_ranks_put_the_previous_generation_first_among_equals() -> None:
    now, before = joint_ranks(np.array([1.0, 2.0, np.inf]), np.array([1.0, 3.0, np.inf]))
    assert now.tolist() == [2, 3, 6]
    assert before.tolist() == [1, 4, 5]


def test_a_rule_that_needs_noise_says_so() -> None:
    with pytest.raises(TypeError, match="the cumulative rule needs the noise"):
        CSA(3.0, 0.1).growth(StepState(), Evidence(np.zeros(2)))


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="rule must be one of csa, psr, rsr, gsr, pta, not 'xyz'"):
        make_rule("xyz", 3, POPULATION, 1.0)
