"""Replicas: machines that hold the same optimizer and exchange only values.

Each of these is given as ``workers=`` to `mmes.minimize`. See docs/parallel.md for which to take.
"""

from mmes.replicas.dask import Dask
from mmes.replicas.local import Local
from mmes.replicas.mpi import MPI
from mmes.replicas.ray import Ray

__all__ = ["MPI", "Dask", "Local", "Ray"]
