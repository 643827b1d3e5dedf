"""Replicas: machines that hold the same optimizer and exchange only values.

Pass one of these as ``workers=`` to `mmes.minimize`. See docs/parallel.md for which one to use.
"""

from mmes.replicas.dask import Dask
from mmes.replicas.local import Local
from mmes.replicas.mpi import MPI
from mmes.replicas.ray import Ray

__all__ = ["MPI", "Dask", "Local", "Ray"]
