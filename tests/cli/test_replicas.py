"""``--replicas`` on the command line."""

import json
import re

import pytest

from mmes.cli import main


def test_replicas_give_the_same_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common = ["run", "sphere", "--dim", "20", "--seed", "1", "--max-generations", "30", "--quiet"]
    common += ["--strategy", "mmes"]
    assert main([*common, "--no-vectorized", "--out", "alone"]) == 0
    assert main([*common, "--no-vectorized", "--out", "both", "--replicas", "local:2"]) == 0
    found = [
        json.loads((tmp_path / name / "result.json").read_text()) for name in ("alone", "both")
    ]
    assert found[0]["fun"] == found[1]["fun"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("slurm:2", "--replicas must be ray, ray:COUNT"),
        ("mpi", r"workers=mmes.replicas.MPI\(\)"),
        ("local:0", "count must be an integer >= 1, not 0"),
        ("local:x", "count must be an integer >= 1, not 'x'"),
        ("local", "--replicas must be"),
    ],
)
def test_what_is_not_an_engine_is_named(given, words, capsys):
    assert main(["run", "sphere", "--dim", "5", "--replicas", given]) == 2
    assert re.search(words, capsys.readouterr().err)
