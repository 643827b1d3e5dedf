"""MMES on manifolds: one generation for all spaces."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mmes.lab.clustering import SparseSpectralObjective, load_graph
from mmes.minimize import minimize, resume
from mmes.spaces.manifolds import Euclidean, Grassmann, Oblique, Sphere, Stiefel, manifold_from
from mmes.strategies import MMES, STRATEGIES, RiemannianMMES


def run(es: MMES, f, generations: int) -> MMES:
    for _ in range(generations):
        es.tell(f(es.ask()))
    return es


def sphere_function(X: np.ndarray) -> np.ndarray:
    return (X**2).reshape(len(X), -1).sum(axis=1)


@pytest.mark.parametrize("kernel", ["reference", "native"])
def test_euclidean_space_is_a_special_case(kernel):
    # The same generation with the identity as projection: rounding apart, the same run.
    x0 = np.linspace(1.0, 3.0, 12)
    flat = run(MMES(x0, 0.5, seed=4, kernel=kernel), sphere_function, 60)
    bent = RiemannianMMES(x0.reshape(4, 3), 0.5, seed=4, kernel=kernel, manifold=Euclidean(4, 3))
    run(bent, sphere_function, 60)
    assert bent.best_x.shape == (4, 3)
    np.testing.assert_allclose(bent.best_x.ravel(), flat.best_x, rtol=1e-6)
    assert bent.sigma == pytest.approx(flat.sigma, rel=1e-9)


def test_parameters_come_from_the_dimension_of_the_manifold(rng):
    manifold = Grassmann(30, 3)  # 81 degrees of freedom in 90 entries
    es = RiemannianMMES(manifold.random_point(rng), 1.0, manifold=manifold, seed=1)
    assert es.population_size == 4 + int(3 * np.log(81))
    assert es.search.parameters.archive_size == 18
    assert es.search.parameters.c_a == 4 / 81


def test_candidates_have_the_shape_of_points(manifold, rng):
    es = RiemannianMMES(manifold.random_point(rng), 0.3, manifold=manifold, seed=1)
    first = es.ask()
    assert first.shape == (es.population_size + 1, *manifold.shape)
    assert not first.flags.writeable
    assert es.ask() is not None
    np.testing.assert_array_equal(es.ask(), first)
    np.testing.assert_array_equal(first[0], es.mean)
    es.tell(np.arange(len(first), dtype=float))
    assert es.ask().shape == (es.population_size, *manifold.shape)
    assert es.mean.shape == es.best_x.shape == manifold.shape


def test_the_mean_stays_on_the_manifold_for_thousands_of_generations():
    manifold = Grassmann(12, 3)
    rng = np.random.default_rng(1)
    es = RiemannianMMES(
        manifold.random_point(rng), 1.0, manifold=manifold, seed=1, stagnation_window="off"
    )
    kernel = es.kernel
    for generation in range(3000):
        mean = es.mean.copy()
        X = es.ask()
        if generation % 100 == 0:
            assert np.abs(mean.T @ kernel.tangents).max() < 1e-12
            assert max(manifold.distance_from(x) for x in X) < 1e-12
        es.tell(rng.standard_normal(len(X)))  # pure noise: the mean wanders, sigma stays of order 1
        if es.sigma < 1e-3 or es.sigma > 1e3:
            es.search.state.sigma = 1.0
    assert manifold.distance_from(es.mean) < 1e-12


def test_selection_without_information_has_no_drift():
    # Constant f: ties go by index, so the parents are the first draws, which are independent. The
    # weighted step has expectation 0 and variance (1 - gamma) / mu_eff in every direction. Over
    # 400 seeds each of its 8 entries has a mean that is, in units of its standard error, nearly
    # standard normal: |z| > 5.5 for one of them has a probability below 1e-6. The standard
    # deviation of 3200 entries is known to 1.3 %; 8 % is six times that.
    manifold = Grassmann(6, 2)
    start = np.eye(6, 2)
    steps = []
    for seed in range(400):
        es = MMES(start, 0.01, manifold=manifold, seed=seed)
        es.tell(np.ones(len(es.ask())))
        steps.append(es.mean[2:] / 0.01)
    steps = np.array(steps).reshape(400, -1)
    z = steps.mean(axis=0) / (steps.std(axis=0) / np.sqrt(400))
    assert np.abs(z).max() < 5.5
    p = es.search.parameters
    assert steps.std() == pytest.approx(np.sqrt((1 - p.gamma) / p.mu_eff), rel=0.08)


def test_without_sparsity_the_smallest_eigenvalues_are_found():
    graph = load_graph("GLIOMA")
    manifold = Grassmann(graph.n_samples, graph.n_clusters)
    objective = SparseSpectralObjective(graph.laplacian(), 0.0)
    start = manifold.random_point(np.random.default_rng(2))
    es = MMES(start, 1.0, manifold=manifold, seed=2, sigma_min=1e-6)
    while not es.stop(max_evaluations=60_000):
        es.tell(objective(es.ask()))
    expected = np.linalg.eigvalsh(graph.laplacian())[:4].sum()
    assert es.best_value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("manifold", [Grassmann(9, 1), Sphere(9), Stiefel(9, 1), Oblique(9, 1)])
def test_one_column_and_a_diagonal_matrix_give_a_coordinate_axis(manifold):
    weights = np.array([5.0, 3.0, 2.0, 0.5, 4.0, 6.0, 7.0, 8.0, 9.0])
    start = manifold.random_point(np.random.default_rng(3))
    es = MMES(start, 1.0, manifold=manifold, seed=3, sigma_min=1e-8, stagnation_window="off")
    while not es.stop(max_evaluations=30_000):
        X = es.ask()
        es.tell((X.reshape(len(X), 9) ** 2) @ weights)
    np.testing.assert_allclose(np.abs(es.best_x.ravel()), np.eye(9)[3], atol=1e-5)


def test_stiefel_finds_a_frame_in_order():
    # Brockett's function: columns weighted by 1, 2, 3 become eigenvectors in order.
    rng = np.random.default_rng(4)
    matrix = np.diag(np.arange(1.0, 9.0))
    manifold = Stiefel(8, 3)
    es = MMES(
        manifold.random_point(rng),
        1.0,
        manifold=manifold,
        seed=5,
        sigma_min=1e-8,
        stagnation_window="off",
    )
    while not es.stop(max_evaluations=40_000):
        X = es.ask()
        es.tell(np.einsum("snk,nm,smk,k->s", X, matrix, X, [3.0, 2.0, 1.0]))
    assert es.best_value == pytest.approx(3 * 1 + 2 * 2 + 1 * 3, rel=1e-6)
    np.testing.assert_allclose(np.abs(es.best_x), np.eye(8, 3), atol=1e-2)


def test_state_goes_through_json_and_continues_to_the_bit():
    graph = load_graph("colon")
    manifold = Grassmann(graph.n_samples, graph.n_clusters)
    objective = SparseSpectralObjective(graph.laplacian(), 0.01)
    start = manifold.random_point(np.random.default_rng(6))
    straight = run(MMES(start, 1.0, manifold=manifold, seed=6), objective, 40)
    half = run(MMES(start, 1.0, manifold=manifold, seed=6), objective, 17)
    half.ask()  # a checkpoint holds no population: what was asked is made again
    state = half.state()
    arrays = state.pop("arrays")
    state = json.loads(json.dumps(state)) | {"arrays": arrays}
    for kind in (MMES, RiemannianMMES):
        resumed = run(kind.from_state(state), objective, 23)
        assert resumed.manifold == manifold
        np.testing.assert_array_equal(resumed.mean, straight.mean)
        np.testing.assert_array_equal(resumed.best_x, straight.best_x)
        assert (resumed.best_value, resumed.sigma) == (straight.best_value, straight.sigma)


def weighted(x: np.ndarray) -> float:
    return float(np.sum(x**2 * np.arange(1, 21).reshape(10, 2)))


@pytest.mark.parametrize("kind", [Grassmann, Stiefel, Oblique])
@pytest.mark.parametrize("seed", range(12))
def test_states_come_back_to_the_bit(kind, seed):
    manifold = kind(10, 2)
    start = manifold.random_point(np.random.default_rng(seed))
    es = MMES(start, 1.0, manifold=manifold, seed=seed)
    for _ in range(seed):
        es.tell([weighted(x) for x in es.ask()])
    kept = es.state()
    again = MMES.from_state(kept).state()
    arrays, others = kept.pop("arrays"), again.pop("arrays")
    # Kernel and threads are those of this machine.
    del kept["options"], again["options"]
    assert again == kept
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert others[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("kind", [Grassmann, Stiefel])
def test_a_run_that_ended_has_the_same_x_when_it_is_resumed(kind, tmp_path):
    for seed in range(12):
        path = tmp_path / f"{seed}.mmes"
        options = {"max_evaluations": 300, "seed": seed}
        ended = minimize(weighted, None, 1.0, manifold=kind(10, 2), checkpoint=path, **options)
        assert resume(path, weighted).x.tobytes() == ended.x.tobytes()
        longer = minimize(
            weighted, None, 1.0, manifold=kind(10, 2), **options | {"max_evaluations": 600}
        )
        resumed = resume(path, weighted, max_evaluations=600)
        assert resumed.x.tobytes() == longer.x.tobytes()


def test_descriptions_of_manifolds(manifold):
    assert manifold_from(json.loads(json.dumps(manifold.description()))) == manifold


def test_unknown_descriptions_are_named():
    with pytest.raises(ValueError, match="'Klein' is not known; kinds are Euclidean, Grassmann"):
        manifold_from({"kind": "Klein", "shape": [3]})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"x0": np.ones((4, 2))}, ValueError, "x0 is not on .*U'U = I fails"),
        ({"x0": np.eye(4, 2).ravel()}, ValueError, r"x0 has shape \(8,\)"),
        ({"bounds": (-1, 1)}, ValueError, "bounds cannot be combined with a manifold"),
        ({"scale": np.ones(8)}, ValueError, "scale cannot be combined with a manifold"),
        ({"scaling": "adaptive"}, ValueError, "scaling='adaptive' cannot be combined"),
        ({"manifold": "grassmann"}, TypeError, "manifold must be one of mmes.spaces.manifolds"),
        ({"sigma0": -1.0}, ValueError, "sigma0 must be"),
    ],
)
def test_bad_input_is_named(given, error, message):
    arguments = {"x0": np.eye(4, 2), "sigma0": 1.0, "manifold": Grassmann(4, 2)} | given
    with pytest.raises(error, match=message):
        MMES(**arguments)


def test_the_manifold_of_the_riemannian_class_is_not_optional():
    with pytest.raises(TypeError, match="manifold"):
        RiemannianMMES(np.eye(4, 2), 1.0)


class TestMinimize:
    manifold = Grassmann(50, 4)

    @pytest.fixture
    def objective(self) -> SparseSpectralObjective:
        return SparseSpectralObjective(load_graph("GLIOMA").laplacian(), 1e-4)

    def test_vectorized_and_one_by_one_give_the_same_run(self, objective):
        start = self.manifold.random_point(np.random.default_rng(1))
        options = {"manifold": self.manifold, "seed": 3, "max_evaluations": 700}
        stacked = minimize(objective, start, 1.0, vectorized=True, **options)
        single = minimize(objective, start, 1.0, **options)
        assert stacked.x.shape == stacked.mean.shape == (50, 4)
        assert stacked.nfev == 700
        np.testing.assert_array_equal(stacked.x, single.x)
        assert stacked.fun == single.fun == objective(stacked.x)
        assert self.manifold.distance_from(stacked.x) < 1e-12

    def test_the_start_is_random_where_none_is_given(self, objective):
        options = {"manifold": self.manifold, "max_evaluations": 1, "vectorized": True}
        first, again, other = (
            minimize(objective, sigma0=1.0, seed=seed, **options) for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first.x, again.x)
        assert self.manifold.distance_from(first.x) < 1e-12
        assert np.abs(first.x - other.x).max() > 0.1

    def test_restarts_begin_at_random_points(self, objective):
        start = np.eye(50, 4)
        seen = []
        result = minimize(
            objective,
            start,
            1e-3,
            manifold=self.manifold,
            seed=1,
            vectorized=True,
            sigma_min=9e-4,
            restarts=2,
            callback=lambda progress: seen.append((progress.start, progress.mean.copy())),
        )
        assert result.starts == 3
        last_means = [mean for start, mean in seen if start == 2]
        # Within steps of 1e-3 of a random subspace, and far from the first start.
        overlap = np.linalg.svd(start.T @ last_means[-1], compute_uv=False)
        assert overlap.max() < 0.9

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"x0": np.ones((50, 4))}, ValueError, "x0 is not on"),
            ({"sigma0": None}, ValueError, "sigma0 is needed; on most manifolds 1"),
            ({"bounds": (-1, 1)}, ValueError, "bounds cannot be combined"),
            ({"manifold": 3}, TypeError, "manifold must be one of mmes.spaces.manifolds, not 3"),
        ],
    )
    def test_bad_input_is_named(self, objective, given, error, message):
        arguments = {"x0": np.eye(50, 4), "sigma0": 1.0, "manifold": self.manifold} | given
        with pytest.raises(error, match=message):
            minimize(objective, max_evaluations=10, **arguments)

    def test_strategies_that_cannot_say_so(self, objective):
        others = [name for name, kind in STRATEGIES.items() if not kind.on_manifolds]
        assert others
        for name in others:
            with pytest.raises(
                ValueError, match=f"'{name}' does not search manifolds; 'mmes' does"
            ):
                minimize(objective, np.eye(50, 4), 1.0, manifold=self.manifold, strategy=name)
