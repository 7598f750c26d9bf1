"""Count how many of the six defects of lesson 11's exercise a reader has mended."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import torch

import simt

DEFECTS = 6
NEAR = 0.01  # a value of a normalised row may differ by this much; cancellation at FAR makes it differ by far more
FAR = 4096.0  # a mean at which float32 has no digit left of the difference of two squares


def count_mended(path: str | Path) -> tuple[int, int]:
    """Return the number of mended defects and the number of all of them.

    A fix does not count while another defect hides it. A file that does not build has no mended defect.
    """
    source = Path(path).read_text(encoding="utf-8")
    try:
        return sum(_find_mended(source)), DEFECTS
    except simt.BuildError:
        return 0, DEFECTS


def _find_mended(source: str) -> list[bool]:
    """Return for each defect whether a call that it spoils shows nothing of it."""
    whole, _, _ = _call(source, rows=3, width=256)
    narrow, _, _ = _call(source, rows=32, width=4)  # fewer numbers in a row than threads in a block
    odd, _, _ = _call(source, rows=4, width=130)  # rows that begin at no multiple of 16 bytes
    _, far, expected = _call(source, rows=2, width=256, mean=FAR)
    ragged, last, _ = _call(source, rows=1, width=132)  # elements that fill no whole number of blocks
    surplus = "out_of_bounds" in ragged
    reached = surplus or not bool(last[0, -1].isnan())
    return [
        "race" not in whole,
        "barrier_divergence" not in narrow,
        "misaligned" not in odd,
        torch.allclose(far.double(), expected, atol=NEAR),
        reached,
        reached and not surplus,
    ]


def _call(source: str, rows: int, width: int, mean: float = 0.0) -> tuple[set[str], torch.Tensor, torch.Tensor]:
    """Call the file's function with simt's checks. Return the names of the findings, the result and what is expected.

    Threads run in reverse: a race of the block's sum then leaves thread 0 a whole sum, and hides less.
    """
    parts = dict(re.findall(r'(\w+)_source = r?"""(.*?)"""', source, re.DOTALL))
    numbers = torch.randn(rows, width, generator=torch.Generator().manual_seed(0)) + mean
    expected = torch.nn.functional.layer_norm(numbers.double(), (width,))
    result = torch.full_like(numbers, torch.nan)
    with simt.check(schedule="reverse") as report:
        x, weight, bias = numbers.clone(), torch.ones(width), torch.zeros(width)
        module = simt.load_inline(
            "lesson11_mended", parts.get("cpp", ""), parts.get("cuda", ""), functions=["layernorm_forward"]
        )
        with contextlib.suppress(RuntimeError):  # the report contains a kernel's error too
            result = module.layernorm_forward(x, weight, bias, 1e-5)
    return {finding.check for finding in report.findings}, result, expected
