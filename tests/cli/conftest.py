"""What the tests of the command line share: a folder with a model, and a command in it."""

import sys

import pytest

from mmes.cli import main

MODEL = """
import time
import numpy as np

def loss(x):
    return float(np.add.reduce(x * x))

def rows(points):
    return [loss(x) for x in points]

def divides(x):
    return 1 / 0

def nothing(x):
    return None

def huge(x):
    return 10**400

def not_a_number(x):
    return float("nan")

def leaves(x):
    if x[0] != 1.0:
        raise SystemExit(0)
    return loss(x)

def wanders(x):
    import os
    os.chdir("/")
    return loss(x)

def slow(x):
    time.sleep(0.02)
    return loss(x)

value = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a fresh folder with a model of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "model.py").write_text(MODEL)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture
def command(capsys):
    """Return a function that runs a command and returns its status, output and error output."""

    def run(*words):
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run
