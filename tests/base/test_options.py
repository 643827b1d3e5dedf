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
    with pytest.raises(TypeError, match=r"it knows .*population_size"):
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
