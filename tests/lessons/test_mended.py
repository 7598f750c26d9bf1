"""Does lesson 11 count what a reader has mended?"""

from __future__ import annotations

import sys

import pytest

from benchmarks.paths import ROOT

sys.path.append(str(ROOT / "lessons"))
import mended  # the notebook imports it from its own folder

HANDED_OUT = ROOT / "kernels_student" / "mend_layernorm.py"
SOLUTION = ROOT / "kernels_ref" / "mend_layernorm" / "solution.py"
FIXES = {
    "race": ("/ WARP] = v;\n", "/ WARP] = v;\n    __syncthreads();\n"),
    "barrier": ("    if (threadIdx.x >= W) return;\n", ""),
    "misaligned": ("quads = W / 4;", "quads = W % 4 == 0 ? W / 4 : 0;"),
    "blocks": ("total / THREADS;", "(total + THREADS - 1) / THREADS;"),
}


def count(tmp_path, source: str) -> tuple[int, int]:
    path = tmp_path / "mend_layernorm.py"
    path.write_text(source, encoding="utf-8")
    return mended.count_mended(path)


def test_a_file_that_does_not_build_has_no_mended_defect(tmp_path):
    assert count(tmp_path, HANDED_OUT.read_text().replace("const int quads", "const quads")) == (0, 6)
    assert count(tmp_path, "") == (0, 6)


@pytest.mark.slow
def test_nothing_and_everything_mended():
    assert mended.count_mended(HANDED_OUT) == (0, 6)
    assert mended.count_mended(SOLUTION) == (6, 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXES)
def test_a_single_fix_counts(name, tmp_path):
    source, (old, new) = HANDED_OUT.read_text(), FIXES[name]
    assert source.count(old) == 1
    assert count(tmp_path, source.replace(old, new)) == (1, 6)
