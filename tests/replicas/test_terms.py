"""What is not allowed is answered by a sentence."""

import re
import threading

import pytest

from mmes.replicas import Local
from mmes.replicas.shares import Cutting, ranges
from paths import TESTS
from replica_runs import run


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"count": 0}, ValueError, "count must be an integer >= 1, not 0"),
        ({"count": -2}, ValueError, "count must be an integer >= 1, not -2"),
        ({"count": "4"}, ValueError, "count must be an integer >= 1, not '4'"),
        ({"count": 2.5}, ValueError, "count must be an integer >= 1, not 2.5"),
        ({"count": [2]}, TypeError, "count must be an integer >= 1"),
        ({"count": 2, "least": 3}, ValueError, "least=3 and count=2"),
        ({"count": 2, "each": 0}, ValueError, "each must be"),
        ({"count": 2, "check": 0}, ValueError, "check must be an integer >= 1, not 0"),
        ({"count": 2, "diverged": "maybe"}, ValueError, "'raise' or 'rebuild'"),
        ({"count": 2, "paitence": 3}, TypeError, "did you mean 'patience'"),
    ],
)
def test_terms_that_are_not_allowed(given, kind, words):
    with pytest.raises(kind, match=words):
        Local(**given)


def test_a_strategy_that_depends_on_the_machine_is_refused():
    with pytest.raises(
        ValueError, match=r"'cma-es' cannot be used with replicas.*strategy='mmes'.*workers="
    ):
        run(strategy="cma-es", workers=Local(1))


def test_an_objective_that_cannot_be_sent_is_named():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"variable 'lock'.*cannot be pickled"):
        run(lambda x: lock.locked(), workers=Local(1))


@pytest.mark.parametrize("rows", [1, 2, 5, 16, 45, 1001])
@pytest.mark.parametrize("parts", [1, 2, 3, 16])
@pytest.mark.parametrize("seconds", [0.0, 1e-3, 10.0])
def test_every_row_is_dealt_once(rows, parts, seconds):
    batches = Cutting(parts, False, seconds).batches(rows)
    assert sorted(row for batch in batches for row in batch) == list(range(rows))
    assert all(batches)
    for batch in batches:
        assert [row for one, end in ranges(batch) for row in range(one, end)] == list(batch)
    if seconds == 0.0:
        assert len(batches) <= parts
        assert max(map(len, batches)) <= -(-rows // parts) + 1


def test_mirror_images_stay_together():
    for batch in Cutting(3, False, 10.0).batches(40):
        assert {(row + 20) % 40 for row in batch} == set(batch)


def test_the_tests_that_the_page_names_are_there():
    tests = TESTS
    named = re.findall(r"`(\S+)::(\w+)`", (tests.parent / "docs" / "replicas.md").read_text())
    assert len(named) >= 15
    for file, name in named:
        assert f"def {name}(" in (tests / file).read_text(), name
