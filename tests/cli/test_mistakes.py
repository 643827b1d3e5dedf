"""Mistakes on the command line: one sentence, no traceback."""

import pytest


def broken_files(folder):
    (folder / "broken.py").write_text("import no_such_module_anywhere\n")
    (folder / "json_like.py").write_text("raise RuntimeError('at import')\n")
    (folder / "leaves.py").write_text("raise SystemExit(0)\n")
    (folder / "json.py").write_text("def f(x):\n    return 1.0\n")
    (folder / "words.txt").write_text("one two\n")
    (folder / "not.mmes").write_text("nothing\n")


MISTAKES = [
    ("rnu", 2, "no command 'rnu'; did you mean 'run'"),
    ("run", 2, "required: TARGET"),
    ("run spher", 2, "did you mean 'sphere'"),
    ("run qqqq", 2, "named 'qqqq'; 'mmes problems' lists them all (name your own function as"),
    ("run sphere --max-evaluation 5", 2, "did you mean '--max-evaluations'"),
    ("run sphere --max-evaluations many", 2, "--max-evaluations: must be an integer >= 1"),
    ("run sphere --max-evaluations 0", 2, "--max-evaluations: must be an integer >= 1, not '0'"),
    ("run sphere --sampling often", 2, "must be 'mixture' or 'exact', not 'often'"),
    ("run sphere --dim 0", 2, "at least 1, not 0"),
    ("run sphere --dim 1e13", 2, "sphere with 10,000,000,000,000 variables needs about 291 TiB; "),
    ("run rotated_cigar --dim 1e9", 2, "needs about 2.183e+07 TiB, for a rotation matrix of n x n"),
    ("run sphere --dim a", 2, "must be an integer"),
    ("run sphere --sigma0 -1", 2, "sigma0 must be a finite number > 0"),
    ("run sphere --workers 0", 2, "workers must be a number of processes >= 1"),
    ("run sphere --workers two", 2, "workers must be a number of processes >= 1"),
    ("run sphere --strategy annealing", 2, "no strategy 'annealing'"),
    ("run sphere --x0 no.npy", 2, "--x0: there is no file no.npy"),
    ("run sphere --dim 2 --x0 1,,2", 2, "--x0: an entry between commas is empty in '1,,2'"),
    ("run sphere --sigma0 abc", 2, "sigma0 must be a finite number > 0, not 'abc' (a str)\n"),
    ("run sphere --strategy", 2, "(see 'mmes run --help')"),
    ("run sphere --x0 words", 2, "--x0 must be a number"),
    ("run sphere --x0 words.txt", 2, "does not contain numbers"),
    ("run sphere --dim 5 --x0 1,2", 2, "--x0 has 2 entries, but there are 5 variables"),
    ("run sphere --bounds 3", 2, "--bounds must be LOW,HIGH"),
    ("run sphere --dim 4 --bounds 5,-5", 2, "a lower bound must not exceed"),
    ("run sphere --evaluation-timeout 3", 2, "needs workers"),
    ("run sphere --problem-option alpha", 2, "must be NAME=VALUE"),
    (
        "run sphere --dim 5 --problem-option dimension=7",
        2,
        "set the number of variables with --dim",
    ),
    ("run sphere --problem-option beta=3", 2, "no option 'beta'"),
    ("run sphere --out model.py", 2, "--out: the folder model.py cannot be created"),
    ("run sphere --checkpoint no/run.mmes", 2, "no, does not exist"),
    ("run lsgo2013/f1 --dim 7", 2, "has 1000 variables"),
    ("run model.py", 2, "the name of the function is needed: model.py:name"),
    ("run none.py:f", 2, "there is no file none.py"),
    ("run model.py:los --dim 2", 2, "did you mean 'loss'"),
    ("run model.py:value --dim 2", 2, "is not a function"),
    ("run broken.py:f", 2, "broken cannot be imported: No module named 'no_such_module"),
    ("run json_like.py:f", 2, "RuntimeError: at import"),
    ("run leaves.py:f", 2, "leaves cannot be imported: SystemExit: 0"),
    ("run json.py:f", 2, "also the name of another module"),
    ("run no.such:f", 2, "there is no module 'no.such'"),
    ("run model.py:loss", 2, "the number of variables is needed"),
    ("run model.py:loss --dim 3", 2, "a start is needed"),
    ("run model.py:divides --x0 1,2 --sigma0 1", 3, "ZeroDivisionError at candidate 0"),
    (
        "run model.py:huge --x0 1,2 --sigma0 1",
        3,
        "an integer that does not fit into a float (candidate 0",
    ),
    ("run model.py:nothing --x0 1,2 --sigma0 1", 3, "returned None"),
    ("resume none.mmes", 2, "there is no file none.mmes"),
    ("resume not.mmes", 4, "not.mmes is corrupt or not a checkpoint"),
    ("problems spher", 2, "did you mean"),
    ("doctor --dim x", 2, "--dim must be an integer"),
    (f"doctor --dim {10**400}", 2, "--dim must be an integer >= 1 and at most 1e+18"),
]


@pytest.mark.parametrize(("words", "status", "sentence"), MISTAKES, ids=lambda v: str(v)[:40])
def test_a_mistake_is_told_in_a_sentence(command, folder, words, status, sentence):
    broken_files(folder)
    got, out, err = command(*words.split())
    assert got == status
    assert sentence in err
    assert err.startswith("mmes: ")
    assert "Traceback" not in err + out
