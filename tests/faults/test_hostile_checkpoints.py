"""Promises about checkpoints: files made to do harm, rows 14 and 31."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

import mmes
from mmes import checkpoint
from mmes.errors import CheckpointError

START = (np.ones(6), 0.5)


class Payload:
    def __reduce__(self):
        return (os.mkdir, ("run-by-pickle",))


def hostile_file(path, arrays, members, compression=zipfile.ZIP_STORED, state=None):
    """Write a checkpoint with an honest digest and whatever content."""
    header = {"format": 1, "library": "0", "state": state or {}, "arrays": arrays}
    text = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names
        for name, data in members:
            archive.writestr(name, data)
        archive.writestr("header.json", text)
        archive.comment = hashlib.blake2b(text, digest_size=16).hexdigest().encode()


def entry(data, name="x", member="0.npy", dtype="<f8", shape=(3,)):
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    return {
        "name": name, "member": member, "dtype": dtype, "shape": list(shape), "blake2b": digest
    }  # fmt: skip


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


GOOD = npy(np.arange(3.0))
OBJECT = npy(np.array([Payload()]), allow_pickle=True)
HUGE = GOOD.replace(b"'shape': (3,), }" + b" " * 12, b"'shape': (3000000000000,), }")
NEGATIVE = GOOD.replace(b"'shape': (3,), }" + b" ", b"'shape': (-3,), }")

HOSTILE = {
    "a pickle instead of an array": ([entry(pickle.dumps(Payload()))], pickle.dumps(Payload())),
    "an array of objects": ([entry(OBJECT, dtype="|O", shape=(1,))], OBJECT),
    "an array of objects that claims to be numbers": ([entry(OBJECT, shape=(1,))], OBJECT),
    "an absurd shape": ([entry(GOOD, shape=(10**15,))], GOOD),
    "an absurd shape in both places": ([entry(HUGE, shape=(3 * 10**12,))], HUGE),
    "a negative shape": ([entry(NEGATIVE, shape=(-3,))], NEGATIVE),
    "a shape of words": ([entry(GOOD, shape=("3",))], GOOD),
    "a shape of truths": ([entry(GOOD, shape=(True,))], GOOD),
    "a type that is none": ([entry(GOOD, dtype="__import__('os')")], GOOD),
    "a missing member": ([entry(GOOD, member="7.npy")], GOOD),
    "a path as a member": ([entry(GOOD, member="../../0.npy")], GOOD),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_row14_hostile_arrays_are_refused(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    arrays, data = HOSTILE[case]
    hostile_file("bad.mmes", arrays, [("0.npy", data)])
    with pytest.raises(mmes.CheckpointCorrupt, match=r"bad\.mmes"):
        checkpoint.read("bad.mmes")
    assert os.listdir(tmp_path) == ["bad.mmes"]


def test_row14_the_cases_are_refused_for_their_own_sake(tmp_path):
    """The same file with an honest array loads: it is not some slip of the test that is refused."""
    hostile_file(tmp_path / "good.mmes", [entry(GOOD)], [("0.npy", GOOD)], state={"a": 1})
    state, arrays = checkpoint.read(tmp_path / "good.mmes")
    assert state == {"a": 1}
    assert np.array_equal(arrays["x"], np.arange(3.0))


def test_row14_a_zip_bomb_is_not_inflated(tmp_path):
    bomb = npy(np.zeros(20_000_000))
    hostile_file(
        tmp_path / "bad.mmes",
        [entry(bomb, shape=(20_000_000,))],
        [("0.npy", bomb)],
        zipfile.ZIP_DEFLATED,
    )
    assert (tmp_path / "bad.mmes").stat().st_size < 300_000
    with pytest.raises(mmes.CheckpointCorrupt, match="is compressed"):
        checkpoint.read(tmp_path / "bad.mmes")


def test_row14_members_outside_the_list_and_twice_the_same_are_refused(tmp_path):
    path = tmp_path / "bad.mmes"
    hostile_file(path, [entry(GOOD)], [("0.npy", GOOD), ("../../evil", b"x")])
    with pytest.raises(mmes.CheckpointCorrupt, match="were added"):
        checkpoint.read(path)
    hostile_file(path, [entry(GOOD)], [("0.npy", GOOD), ("0.npy", GOOD)])
    with pytest.raises(mmes.CheckpointCorrupt, match="same name"):
        checkpoint.read(path)
    assert os.listdir(tmp_path) == ["bad.mmes"]


def test_row14_names_of_arrays_are_only_names(tmp_path):
    path = tmp_path / "odd.mmes"
    hostile_file(path, [entry(GOOD, name="../../../etc/x")], [("0.npy", GOOD)])
    assert list(checkpoint.read(path)[1]) == ["../../../etc/x"]
    assert os.listdir(tmp_path) == ["odd.mmes"]


def test_row14_no_pickle_on_the_way_in(saved):
    code = (
        "import builtins, sys\n"
        "import mmes, mmes.checkpoint\n"
        "import pickle, _pickle\n"
        "def refuse(*a, **k): raise AssertionError('pickle was used')\n"
        "for name in ('load', 'loads', 'Unpickler', '_Unpickler'):\n"
        "    setattr(pickle, name, refuse)\n"
        f"mmes.checkpoint.read({str(saved)!r})\n"
        "from mmes.testing.hostile import sphere\n"
        f"print(mmes.resume({str(saved)!r}, sphere, max_evaluations=350).nfev)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "350\n", done.stderr


def test_row31_a_list_of_members_without_end_is_not_read(tmp_path):
    """Hundreds of thousands of empty members: parsed, they would take a hundred times the file."""
    path = tmp_path / "bad.mmes"
    hostile_file(path, [], [(str(k), b"") for k in range(30_000)])
    with pytest.raises(mmes.CheckpointCorrupt, match="list of members is too long"):
        checkpoint.read(path)


def test_row31_a_header_without_end_is_not_read(tmp_path):
    hostile_file(tmp_path / "bad.mmes", [], [], state={"a": [[]] * 2_000_000})
    with pytest.raises(mmes.CheckpointCorrupt, match=r"are larger than the file|too long"):
        checkpoint.read(tmp_path / "bad.mmes")
    with pytest.raises(CheckpointError, match="are the notes too long"):
        checkpoint.write(tmp_path / "new.mmes", {"notes": "x" * 5_000_000}, {})
