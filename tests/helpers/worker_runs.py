"""Runs with workers, and their processes as seen from outside."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import psutil

import mmes
from mmes.testing import hostile

START = (np.ones(6), 0.5)


def plain(**options):
    return mmes.minimize(hostile.sphere, *START, seed=5, **options)


def make_executor():
    return ProcessPoolExecutor(2, mp_context=get_context("forkserver"))


def name_of(process):
    try:
        return process.name()
    except psutil.Error:
        return ""


def is_worker(process):
    try:
        return "forkserver" in " ".join(process.cmdline()) and (
            process.ppid() != psutil.Process().pid
        )
    except psutil.Error:
        return False


def no_memory(*_):
    raise OSError(28, "No space left on device")
