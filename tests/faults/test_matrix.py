"""Where two features meet: every pair, briefly, against the laws of `helpers/laws.py`.

Failures here are of the library, seldom of one feature: run one pair alone to see it again, with
`-k "failures-resume"`.
"""

import importlib.util
import itertools
import multiprocessing
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mmes
from features import FEATURES, KINDS, combinations, fits, trials
from laws import LAWS, Trial, broken_laws, living
from mmes.errors import FailedEvaluationWarning
from watched import Fails, Noise, Seen, Watched

PAIRS = list(itertools.combinations(FEATURES.values(), 2))


def named(pair):
    return "-".join(feature.name.replace(" ", "_") for feature in pair)


def check(kind, chosen, seed, folder):
    if any(f.name == "device" for f in chosen) and importlib.util.find_spec("torch") is None:
        return ""
    folder.mkdir()
    found = [broken_laws(trial) for trial in trials(kind, chosen, seed, folder)]
    return "\n".join(f"{kind.name}: {sentence}" for part in found for sentence in part)


def kinds_of(chosen, thin):
    """Return the kinds to try: of what takes long, one, in turn."""
    fitting = [kind for kind in KINDS.values() if fits(kind, chosen)]
    costly = any(feature.costly for feature in chosen)
    if thin and costly and fitting:
        place = sum(list(FEATURES).index(feature.name) for feature in chosen)
        return [fitting[place % len(fitting)]]
    return fitting


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_row43_pairs_of_features_keep_the_laws(pair, tmp_path):
    found = [check(kind, pair, 1, tmp_path / kind.name) for kind in kinds_of(pair, thin=True)]
    assert not "\n".join(filter(None, found))


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_row43_pairs_of_features_keep_the_laws_everywhere(pair, tmp_path):
    found = [check(kind, pair, 2, tmp_path / kind.name) for kind in kinds_of(pair, thin=False)]
    assert not "\n".join(filter(None, found))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_row43_triples_of_features_keep_the_laws(part, tmp_path):
    """Every second of them; `tools/attack.py` draws from all at random."""
    found = []
    for number, (kind, chosen) in enumerate(combinations(3)):
        if number % 40 == 2 * part and not any(feature.costly for feature in chosen):
            found.append(check(kind, chosen, part, tmp_path / str(number)))
    assert not "\n".join(filter(None, found))


def test_row43_a_run_that_breaks_at_its_end_is_counted(tmp_path):
    """The generation before the mean's last evaluation was incomplete, and is made once more."""
    chosen = FEATURES["resume"], FEATURES["batches"]
    assert not check(KINDS["auto large"], chosen, 4280156868, tmp_path / "run")


def test_row43_a_mean_that_fails_on_the_last_batch_has_no_value_in_both_runs(tmp_path):
    chosen = FEATURES["workers"], FEATURES["caught"], FEATURES["batches"]
    assert not check(KINDS["auto large"], chosen, 1779859952, tmp_path / "run")


# The laws find what is wrong


def good(tmp_path, layers=(), **options):
    objective = Watched(str(tmp_path / "calls"), layers, (-1.0, 2.0))
    box = {"bounds": (-1.0, 2.0), "x0": np.ones(4)}
    options = box | {"sigma0": 0.5, "seed": 1, "max_evaluations": 3000} | options
    before = living()
    result = mmes.minimize(objective, **options, evaluate_x0=False)
    return Trial(result, objective.seen(), objective, options, twin=result, before=before)


def changed(trial, **changes):
    """Return the trial with another result."""
    fields = {name: getattr(trial.result, name) for name in dir(trial.result) if name[0] != "_"}
    return replace(trial, result=SimpleNamespace(**fields | changes))


def test_row43_a_good_run_breaks_no_law(tmp_path):
    assert broken_laws(good(tmp_path)) == []


def laws(trial):
    return {sentence.split(":")[0] for sentence in broken_laws(trial)}


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_row43_every_law_finds_what_is_wrong(tmp_path):
    trial = good(tmp_path, (Fails(),))
    other = np.full(4, 0.2)
    asked = replace(trial, options=trial.options | {"constraints": [lambda x: 1.0]})
    on_batches = trial.options | {"batches": int}
    wrong = {
        "success_is_true": changed(trial, success=True, fun=5.0),
        "constraints_hold": changed(asked, constraint_violation=0.0),
        "the_value_is_that_of_the_point": changed(trial, x=other),
        "nothing_better_was_seen": changed(trial, best_seen=trial.result.fun + 1),
        "evaluations_are_counted": changed(trial, failed=trial.result.failed - 1),
        "nothing_is_outside_the_box": changed(trial, mean=np.full(4, 2.1)),
        "a_run_equals_its_twin": changed(trial, sigma=0.123),
        "only_noise_is_called_noise": changed(trial, noisy=True),
        "every_generation_has_its_batch": replace(
            trial, seen=replace(trial.seen, batches=(0, 0, 2, 1)), options=on_batches
        ),
        "only_failures_are_warned_of": replace(trial, warned=(RuntimeWarning,)),
        "nothing_is_left_behind": replace(trial, folder=tmp_path),
    }
    assert set(wrong) == {law.__name__ for law in LAWS}
    for law, bad in wrong.items():
        assert law in laws(bad), law


def test_row43_laws_that_depend_on_the_run(tmp_path):
    trial = good(tmp_path)
    seen = trial.seen
    assert "evaluations_are_counted" in laws(changed(trial, nfev=trial.result.nfev + 1))
    beyond = replace(trial, options=trial.options | {"max_evaluations": seen.calls - 1})
    assert "evaluations_are_counted" in laws(beyond)
    outside = replace(trial, seen=Seen(seen.calls, seen.failed, 1, seen.lowest))
    assert "nothing_is_outside_the_box" in laws(outside)
    missed = changed(trial, success=False, reason=mmes.StopReason.TARGET_REACHED)
    assert "success_is_true" in laws(missed)
    claimed = changed(trial, success=True, reason=mmes.StopReason.STAGNATED)
    assert "success_is_true" in laws(claimed)
    # Without a failure, a warning of failures is one too many.
    warned = replace(trial, warned=(FailedEvaluationWarning,))
    assert "only_failures_are_warned_of" in laws(warned)
    # What others had started before is not the run's.
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        assert "nothing_is_left_behind" in laws(trial)
        assert "nothing_is_left_behind" not in laws(replace(trial, before=living()))
    finally:
        other.kill()
        other.join()
    # Of a noisy objective the value is not that of the point.
    noisy = replace(trial, objective=replace(trial.objective, layers=(Noise(),)))
    assert "the_value_is_that_of_the_point" not in laws(changed(noisy, fun=1.0))
