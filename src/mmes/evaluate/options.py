"""The options of evaluation: timeouts, retries, chunks."""

from __future__ import annotations

from mmes.base.options import Option

EVALUATION = (
    Option(
        "vectorized",
        bool,
        "The objective takes a (k, n) array and returns k values, one per row.",
        default=False,
    ),
    Option(
        "evaluation_timeout",
        float,
        "Time limit in seconds for one evaluation (one call of a vectorized objective). A worker "
        "that takes longer is killed.",
        default_text="unlimited",
        low=0,
        low_open=True,
    ),
    Option(
        "retries",
        int,
        "How many times an evaluation is repeated if its worker died or was killed.",
        default=3,
        low=0,
    ),
    Option(
        "on_lost",
        str,
        "What to do when all retries have failed: 'raise' stops the run with an error, 'nan' ranks "
        "the candidate last.",
        default="raise",
        choices=("raise", "nan"),
    ),
    Option(
        "chunk_size",
        int,
        "Candidates sent to a worker at a time. It does not affect the result.",
        default_text="1; more if evaluations are very short; equal shares if vectorized",
        low=1,
        expert=True,
    ),
)
