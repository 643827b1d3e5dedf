"""The options of evaluation: timeouts, retries, chunks."""

from __future__ import annotations

from mmes.base.options import Option

EVALUATION = (
    Option(
        "vectorized",
        bool,
        "Whether the objective takes a (k, n) array and returns k values.",
        default=False,
    ),
    Option(
        "evaluation_timeout",
        float,
        "Seconds for one evaluation (one call of a vectorized objective); a worker that takes "
        "longer is killed.",
        default_text="unlimited",
        low=0,
        low_open=True,
    ),
    Option(
        "retries",
        int,
        "How often an evaluation is repeated whose worker died or was killed.",
        default=3,
        low=0,
    ),
    Option(
        "on_lost",
        str,
        "When the retries are used up: 'raise' ends the run, 'nan' ranks the candidate last.",
        default="raise",
        choices=("raise", "nan"),
    ),
    Option(
        "chunk_size",
        int,
        "Candidates handed to a worker at a time; no result depends on it.",
        default_text="1; more where evaluations are very short; a worker's share if vectorized",
        low=1,
        expert=True,
    ),
)
