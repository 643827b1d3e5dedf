"""Replicas that die, hang, fall behind or go astray: the run's bits stay the same."""

import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import mmes
import mmes.replicas.crew as crew_module
from mmes.errors import LostWorkerWarning, ReducedArchiveWarning, ReplicaMismatch, ReplicaWarning
from mmes.replicas import Local, digests
from mmes.testing import hostile
from replica_runs import Inside, Replicas, counted, equal, rosenbrock, run

# Most of these kill; what is said of it has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::mmes.errors.LostWorkerWarning")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_a_kill_in_every_tenth_generation_changes_nothing(kills):
    crew = Replicas(2)
    dice = random.Random(1)
    at = sorted(dice.sample(range(2, 10 * kills), kills))

    def kill(progress):
        if at and progress.generation >= at[0]:
            at.pop(0)
            crew.engine.shoot(dice.choice(crew.engine.alive))

    options = {"max_generations": 10 * kills, "n": 20, "stagnation_window": "off"}
    result = run(rosenbrock, workers=crew, callback=kill, **options)
    equal(result, run(rosenbrock, **options))
    assert crew.engine.killed == kills
    assert crew.crew.roster.rebuilt <= kills


@pytest.mark.parametrize("moment", ["work", "told", "hello", "adopt", "block"])
def test_a_kill_at_any_message_changes_nothing(moment):
    crew = Replicas(2)
    seen = 0

    def kill(handle, message):
        nonlocal seen
        seen += message[0] == moment
        if message[0] == moment and seen in (1, 2, 5):
            crew.engine.shoot(handle)

    crew.engine.before = kill
    equal(run(rosenbrock, workers=crew), run(rosenbrock))
    assert crew.engine.killed >= 1


def test_all_are_killed_at_once_and_it_goes_on():
    crew = Replicas(3)

    def kill(progress):
        if progress.generation == 30:
            for handle in crew.engine.alive:
                crew.engine.shoot(handle)

    result = run(rosenbrock, workers=crew, callback=kill)
    equal(result, run(rosenbrock))
    assert crew.engine.killed == 3


def test_all_are_killed_while_they_evaluate():
    crew = Replicas(2)

    def kill(handle, message):
        if message[0] == "work" and message[2] == 20 and crew.engine.killed < 2:
            crew.engine.shoot(handle)

    crew.engine.before = kill
    result = run(rosenbrock, workers=crew)
    equal(result, run(rosenbrock))
    assert result.retried > 0


def test_killed_whenever_there_is_work_ends_with_an_error():
    crew = Replicas(2)
    crew.engine.before = lambda handle, message: (
        crew.engine.shoot(handle) if message[0] == "work" else None
    )
    began = time.monotonic()
    with pytest.raises(mmes.EvaluationError, match="replica"):
        run(rosenbrock, workers=crew, retries=2)
    assert time.monotonic() - began < 30
    assert not crew.engine.alive


def test_killed_before_they_are_ready_ends_with_an_error():
    crew = Replicas(2)
    crew.engine.before = lambda handle, message: crew.engine.shoot(handle)
    with pytest.raises(mmes.EvaluationError, match="4 replicas in a row ended before"):
        run(rosenbrock, workers=crew)
    assert not crew.engine.alive


def test_an_evaluation_that_kills_is_repeated_and_then_an_error(tmp_path):
    once = hostile.Dies(str(tmp_path), at=(40,))
    result = run(once, workers=Local(2))
    equal(result, run())
    assert result.retried >= 1
    with pytest.raises(mmes.EvaluationError, match="died or was killed"):
        run(hostile.Dies(str(tmp_path)), workers=Local(2), retries=1)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_an_evaluation_that_kills_may_count_as_failed(tmp_path):
    result = run(
        hostile.Dies(str(tmp_path)), workers=Local(2), retries=0, on_lost="nan", max_generations=1
    )
    assert result.failed == result.nfev


def test_a_hanging_evaluation_is_ended(tmp_path):
    hangs = hostile.Hangs(str(tmp_path), at=(40,))
    result = run(hangs, workers=Local(2), evaluation_timeout=0.5)
    equal(result, run())
    assert result.retried >= 1


def test_a_stopped_replica_is_ended_by_the_time_limit():
    crew = Replicas(2)
    stopped = []

    def stop(progress):
        if progress.generation == 20:
            stopped.append(crew.engine.alive[0].process.pid)
            os.kill(stopped[0], signal.SIGSTOP)

    result = run(workers=crew, callback=stop, evaluation_timeout=0.2)
    equal(result, run())
    assert stopped


def test_a_newcomer_reads_its_state_while_the_crew_goes_on():
    """It is started in generation 5, hears of the state in 6, and has it after 100 more."""
    crew = Replicas(2, engine=Inside)
    engine = crew.engine
    real_call, held = engine.call, []

    def call(handle, message):
        answer = real_call(handle, message)
        if message[0] == "adopt" and len(engine.replicas) == 2 and crew.crew.roster.rebuilt:
            held.append(answer)
        return answer

    def wait(futures, timeout):
        head = crew.crew.roster.head
        late = head is not None and head.generation > 105
        return [f for f in futures if f not in held or late]

    def kill(progress):
        if progress.generation == 5:
            engine.replicas.pop()

    engine.call, engine.wait = call, wait
    options = {"max_generations": 150, "stagnation_window": "off"}
    result = run(rosenbrock, workers=crew, callback=kill, **options)
    equal(result, run(rosenbrock, **options))
    assert held
    assert crew.crew.roster.rebuilt == 1


def test_whoever_has_missed_values_takes_over_the_state():
    crew = Replicas(2, engine=Inside)
    real_call, adopted = crew.engine.call, []

    def call(handle, message):
        adopted.extend([message[0]] * (message[0] == "adopt"))
        if message[0] == "told" and message[2] == 30 and handle is crew.engine.replicas[0]:
            message = ("told", message[1], 31, message[3])  # as if some had been lost
        return real_call(handle, message)

    crew.engine.call = call
    equal(run(rosenbrock, workers=crew), run(rosenbrock))
    assert len(adopted) == 3


@pytest.mark.parametrize("what", ["mean", "path", "archive", "sigma", "scale"])
@pytest.mark.parametrize("diverged", ["raise", "rebuild"])
def test_one_flipped_bit_is_noticed(what, diverged):
    crew = Replicas(2, engine=Inside, check=10, diverged=diverged)

    def flip(progress):
        if progress.generation != 12:
            return
        state = crew.engine.replicas[1].es.search.state
        if what == "sigma":
            state.sigma = np.nextafter(state.sigma, 1)
            return
        array = getattr(state, what)
        if what == "archive":
            array = array.vectors[array.order[-1]]
        array.view(np.uint32)[3] ^= 1

    options = {"scaling": "adaptive"}
    if diverged == "raise":
        with pytest.raises(ReplicaMismatch, match="from those of the head in generation") as caught:
            run(rosenbrock, workers=crew, callback=flip, **options)
        found = int(str(caught.value).split("generation ")[1].split(":")[0])
        assert 12 <= found <= 22
    else:
        with pytest.warns(ReplicaWarning, match="rebuilt from the head's state"):
            result = run(rosenbrock, workers=crew, callback=flip, **options)
        assert result.nit == 60


def test_a_machine_that_would_walk_another_path_is_refused(monkeypatch):
    crew = Replicas(2, engine=Inside)
    real_call = crew.engine.call

    def call(handle, message):
        answer = real_call(handle, message)
        if message[0] == "probe":
            answer[0] = ("here", answer[0][1] | {"probe": "0123"})
        return answer

    crew.engine.call = call
    with pytest.raises(ReplicaMismatch, match=r"probe is [0-9a-f]+ on .* and 0123 on .*, process"):
        run(workers=crew)


def test_other_versions_are_told_and_another_mmes_is_refused():
    def changed(**items):
        crew = Replicas(2, engine=Inside)
        real_call = crew.engine.call

        def call(handle, message):
            answer = real_call(handle, message)
            if message[0] == "hello":
                answer[0] = ("here", answer[0][1] | items)
            return answer

        crew.engine.call = call
        return crew

    with pytest.warns(ReplicaWarning, match=r"numpy is .* and 0.9 on .*, process"):
        equal(run(workers=changed(numpy="0.9")), run())
    with pytest.raises(ReplicaMismatch, match=r"mmes is .* and 9.9 on"):
        run(workers=changed(mmes="9.9"))


def test_the_probe_tells_kernels_apart():
    es = mmes.MMES(np.ones(10), 1.0)
    of = digests.probe_of(es)
    other = of | {"kernel": "reference"}
    assert digests.probe(mmes.MMES, of) == digests.probe(mmes.MMES, of)
    assert digests.probe(mmes.MMES, of)["probe"] != digests.probe(mmes.MMES, other)["probe"]


def test_a_factory_is_called_once_in_each_replica(tmp_path):
    count = hostile.Counting(str(tmp_path))
    objective = mmes.Factory(counted, count)
    equal(run(objective, workers=Local(3), max_generations=100), run(max_generations=100))
    assert count.calls == 3


def test_a_factory_that_raises_ends_the_run_before_it_begins():
    def broken():
        raise ZeroDivisionError("no model here")

    with pytest.raises(mmes.EvaluationError, match="no model here") as caught:
        run(mmes.Factory(broken), workers=Local(2))
    assert "process" in str(caught.value)
    assert "ZeroDivisionError" in "".join(caught.value.__notes__)


def test_the_head_is_killed_and_another_crew_goes_on(tmp_path):
    text = """
    import sys, os
    import numpy as np
    import mmes
    from mmes.replicas import Local
    from mmes.testing import hostile

    def die(progress):
        if progress.generation == int(sys.argv[2]):
            os.kill(os.getpid(), 9)

    if __name__ == "__main__":
        mmes.minimize(hostile.sphere, np.linspace(1, 2, 30), 0.5, seed=5, max_generations=60,
                      strategy="mmes",
                      workers=Local(int(sys.argv[1])), callback=die, checkpoint="run.mmes",
                      checkpoint_generations=7, resume="auto")
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    killed = subprocess.run(
        [sys.executable, str(script), "3", "30"], cwd=tmp_path, capture_output=True, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    result = run(
        workers=Local(1), checkpoint=tmp_path / "run.mmes", checkpoint_generations=7, resume="auto"
    )
    equal(result, run())


def test_too_few_replicas_for_too_long_are_an_error():
    crew = Replicas(2, engine=Inside, patience=0.3)
    crew.engine.room = False
    with pytest.raises(mmes.EvaluationError, match=r"0 replicas are ready and at least 1 are"):
        run(workers=crew)


def test_a_crew_that_shrinks_goes_on_and_takes_newcomers(monkeypatch):
    monkeypatch.setattr("mmes.replicas.roster.LOOK_SECONDS", 0.0)
    crew = Replicas(3, engine=Inside)

    def change(progress):
        if progress.generation == 10:
            crew.engine.replicas.pop()
        crew.engine.room = progress.generation > 20

    crew.engine.room = True
    result = run(workers=crew, callback=change)
    equal(result, run())
    assert len(crew.crew.roster.members) == 0
    assert crew.crew.roster.rebuilt == 1


def test_an_objective_that_fails_says_where(tmp_path):
    with pytest.raises(mmes.EvaluationError, match="raised ZeroDivisionError") as caught:
        run(hostile.Raises(str(tmp_path), at=(50,)), workers=Local(2))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "evaluated by the replica on" in "".join(caught.value.__notes__)


def test_the_smallest_machine_decides_on_the_archive():
    crew = Replicas(2, engine=Inside)
    real_call, n = crew.engine.call, 3000
    es = mmes.MMES(np.ones(n), 0.5)
    # Two of them share the machine, which has room for an archive of half the size.
    room = es.planned_bytes - 4 * n * es.parameters.archive_size // 2

    def call(handle, message):
        answer = real_call(handle, message)
        if message[0] == "hello":
            answer[0] = ("here", answer[0][1] | {"available bytes": int(2 * room / 0.8) + 1})
        return answer

    crew.engine.call = call
    with pytest.warns(ReducedArchiveWarning, match=r"least memory, .*archive_size is reduced to"):
        result = run(rosenbrock, n=n, workers=crew, max_generations=10)
    m = result.options["archive_size"]
    assert abs(m - es.parameters.archive_size // 2) <= 1
    equal(result, run(rosenbrock, n=n, archive_size=m, max_generations=10))


class Mute(Inside):
    """Replicas that say hello and then load their objective for ever."""

    def call(self, handle, message):
        answer = super().call(handle, message)
        answer.silent = message[0] == "prepare"
        return answer

    def wait(self, futures, timeout):
        time.sleep(min(timeout, 0.01))
        return [future for future in futures if not future.silent]


@pytest.mark.timeout(60)
def test_a_replica_that_sleeps_while_it_starts_is_given_up():
    """Failed before: it was waited for without end, since it had said hello."""
    workers = Replicas(1, engine=Mute, patience=0.3)
    with pytest.raises(mmes.EvaluationError) as caught:
        run(rosenbrock, workers=workers, retries=1, evaluation_timeout=1)
    assert "2 replicas in a row ended before they were ready" in str(caught.value)
    assert re.search(r"process \d+ \(no answer to 'prepare' for 0.3 s\)", str(caught.value))
    assert not workers.engine.replicas


def test_each_death_is_told_once_with_its_reason():
    """Failed before: not a word."""
    crew = Replicas(2)

    def kill(progress):
        if progress.generation in (10, 30):
            crew.engine.shoot(crew.engine.alive[0])

    with pytest.warns(LostWorkerWarning, match="the replica on .*, process") as said:
        result = run(rosenbrock, workers=crew, callback=kill)
    equal(result, run(rosenbrock))
    assert len(said) == crew.engine.killed == 2
    assert len({str(one.message) for one in said}) == 2
    assert all("has ended" in str(one.message) for one in said)


def test_an_answer_that_takes_unusually_long_is_told(tmp_path, monkeypatch):
    """A machine that is gone may take its engine most of a minute to notice."""
    monkeypatch.setattr(crew_module, "SAY_SECONDS", 0.3)
    hangs = hostile.Hangs(str(tmp_path), at=(40,))
    with pytest.warns(LostWorkerWarning) as said:
        run(hangs, workers=Local(2), evaluation_timeout=3)
    first, second = (str(one.message) for one in said)
    assert "has not answered for" in first
    assert "was lost while it evaluated" in second
    assert "more than 3 s for an evaluation" in second
