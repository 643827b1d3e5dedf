"""``--replicas ray:16``: other machines as participants of a run."""

from __future__ import annotations

import argparse
from typing import Any

from mmes.base.extras import require
from mmes.cli.arguments import number
from mmes.cli.status import Mistake
from mmes.replicas import Dask, Local, Ray

FORMS = "ray, ray:COUNT, dask:ADDRESS or local:COUNT"


def workers_of(arguments: argparse.Namespace) -> Any:
    """Return what ``--workers`` and ``--replicas`` mean together: workers inside each replica."""
    text, each = arguments.replicas, arguments.workers
    if text is None:
        return each
    kind, _, rest = text.partition(":")
    try:
        if kind == "ray":
            return Ray(number(rest) if rest else None, each=each)
        if kind == "local" and rest:
            return Local(number(rest), each=each)
        if kind == "dask" and rest:
            return Dask(require("distributed", "dask").Client(rest), each=each)
    except (TypeError, ValueError, ImportError, OSError) as error:
        raise Mistake(f"--replicas {text}: {error}") from error
    raise Mistake(
        f"--replicas must be {FORMS}, not {text!r}; for MPI, give workers=mmes.replicas.MPI() to "
        "mmes.minimize in a script"
    )
