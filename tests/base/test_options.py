"""Options: every row of every table is tried at and beyond its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mmes
from mmes.base.options import Option, validated
from mmes.minimize import RUN_OPTIONS

TABLE = RUN_OPTIONS + mmes.MMES.option_table()
BY_NAME = {option.name: option for option in TABLE}
X0 = np.zeros(10)


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def bad_values(option: Option) -> list:
    if option.kind is bool:
        return [1, 0.5, "yes", None]
    bad: list = [[], {}, object(), True]
    if option.kind is str:
        return [*bad, "no such word", 3]
    bad += ["no such word", math.nan, math.inf, 1j]
    if option.kind is int:
        bad.append(2.5)
    if option.low is not None:
        bad.append(option.low if option.low_open else option.low - 1)
    if option.high is not None:
        bad.append(option.high if option.high_open else option.high * 2 + 1)
    return bad


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_bad_values_are_refused_with_name_value_and_range(option: Option) -> None:
    for value in bad_values(option):
        with pytest.raises((TypeError, ValueError, ImportError)) as caught:
            mmes.minimize(sphere, X0, 1.0, strategy="mmes", **{option.name: value})
        if isinstance(caught.value, ImportError):  # a device is any word where torch is missing
            assert option.name == "device"
            continue
        message = str(caught.value)
        assert option.name in message
        assert option.allowed in message
        assert repr(value) in message


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_limits_themselves_are_accepted(option: Option) -> None:
    for value in (option.low, option.high):
        if value is not None and not (option.low_open if value == option.low else option.high_open):
            assert option.check(value) == value
    for word in option.choices:
        assert option.check(word) == word
    assert option.text.endswith(".")
    assert option.allowed


def test_unknown_option_suggests_the_nearest() -> None:
    with pytest.raises(TypeError, match="'max_evaluation'; did you mean 'max_evaluations'"):
        mmes.minimize(sphere, X0, 1.0, max_evaluation=10)
    with pytest.raises(TypeError, match=r"mmes\.options\(\) lists all options"):
        mmes.MMES(X0, 1.0, qqqqqqq=1)


def test_numbers_come_in_the_ways_people_write_them() -> None:
    assert BY_NAME["max_evaluations"].check(1e6) == 1_000_000
    assert isinstance(BY_NAME["max_evaluations"].check(np.int32(5)), int)
    assert BY_NAME["damping"].check(np.float32(2)) == 2.0
    assert BY_NAME["mixing"].check("m") == "m"
    assert BY_NAME["population_size"].check(None) is None


def test_defaults_are_filled_in() -> None:
    chosen = validated(TABLE, {"mixing": 7}, "test")
    assert chosen["mixing"] == 7
    assert chosen["mirrored"] is True
    assert chosen["archive_size"] is None


def test_hints_for_those_who_come_from_other_libraries() -> None:
    """Failed before: options= "did you mean 'population_size'?", method= a list of 45 names."""
    for given, hint in (
        ({"options": {"maxiter": 4}}, "pass each option as a separate argument"),
        ({"method": "mmes"}, "it is called strategy here"),
        ({"qqqq": 1}, r"mmes\.options\(\) lists all"),
    ):
        with pytest.raises(TypeError, match=hint):
            mmes.minimize(lambda x: 0.0, np.ones(3), 1.0, **given)


@pytest.mark.parametrize(
    ("name", "internal"), [("noise", "no"), ("scaling", "fixed"), ("mirroring", "fixed")]
)
def test_off_is_the_same_word_everywhere(name: str, internal: str) -> None:
    """Failed before: 'no' here and 'fixed' there; these are still taken."""
    option = next(option for option in mmes.options("adaptive") if option.name == name)
    assert "'off'" in option.allowed
    assert f"'{internal}'" not in option.allowed
    assert option.check("off") == option.check(internal) == internal


def test_a_forgotten_vectorized_is_guessed() -> None:
    """Failed before: a bare AxisError."""
    with pytest.raises(mmes.EvaluationError, match="give vectorized=True"):
        mmes.minimize(lambda points: (points**2).sum(axis=1), np.ones(3), 1.0)
