"""Occupancy: does the scarcest resource limit the blocks, as on an H200?"""

import json
import math
from pathlib import Path

import pytest

import simt


@pytest.mark.parametrize(
    "device, threads, shared, registers, blocks, limited_by",
    [
        ("H100", 256, 0, 32, 8, ("warps", "registers")),
        ("H100", 1024, 0, 64, 1, ("registers",)),
        ("H100", 32, 0, 16, 32, ("blocks",)),
        ("A100", 128, 48 * 1024, 32, 3, ("shared",)),
        ("T4", 256, 16 * 1024, 32, 4, ("warps", "shared")),
        ("T4", 1024, 64 * 1024, 32, 1, ("warps", "shared")),
    ],
)
def test_does_the_scarcest_resource_limit_the_blocks(device, threads, shared, registers, blocks, limited_by):
    found = simt.occupancy(device, threads, shared, registers)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)


def test_are_the_limits_those_that_ncu_told_on_an_h200():
    file = Path(__file__).parents[3] / "benchmarks" / "data" / "ncu.json"
    rows = [row for program in json.loads(file.read_text())["programs"].values() for row in program["small"]]
    assert len(rows) > 100
    for row in rows:
        shared = row.get("shared_static", 0) + row.get("shared_dynamic", 0)
        found = simt.occupancy("H200", math.prod(row["block"]), shared, row["registers"], math.prod(row["grid"]))
        assert found.limits["warps"] == row["limit_warps"], row["kernel"]
        assert found.limits["registers"] == row["limit_registers"], row["kernel"]
        assert found.limits["blocks"] == row["limit_blocks"], row["kernel"]
