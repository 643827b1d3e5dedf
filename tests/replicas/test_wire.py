"""What really travels: counters of a network card, with three network namespaces as machines."""

import argparse
import importlib.util
import os
import shutil

import pytest

from paths import ROOT

BENCHMARK = ROOT / "benchmarks" / "replicas.py"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_wire_carries_as_much_for_a_million_variables_as_for_ten_thousand():
    pytest.importorskip("ray")
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for tool in ("unshare", "ip", "tc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing, so there are no network namespaces")
    spec = importlib.util.spec_from_file_location("replicas_benchmark", BENCHMARK)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    way, shipped = "replicas, Ray", "shipped, Ray"
    arguments = argparse.Namespace(dims=[1e4, 1e6], generations=7, turns=1, ways=[way, shipped])
    found = benchmark.on_three_machines(arguments, "full")
    assert all(row["same"] for row in found["rows"])
    small, large = ((row["ways"][way], row["ways"][shipped]) for row in found["rows"])
    net = [count - found["idle"] * seconds for (seconds, count), _ in (small, large)]
    assert abs(net[1] - net[0]) < 4000
    assert large[1][1] > 10_000 * max(net[1], 1)
