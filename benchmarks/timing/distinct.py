"""Right submissions that all differ, so that the builds of none are found in a cache."""

from __future__ import annotations

import time

from benchmarks.paths import ROOT
from grader.classroom.collect import Attempt


def make_attempts(problems: list[str], copies: int) -> list[Attempt]:
    """Return so many submissions to each problem, which differ in their CUDA sources."""
    texts = {name: (ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8") for name in problems}
    return [_make_attempt(name, text, copy) for copy in range(copies) for name, text in texts.items()]


def _make_attempt(name: str, text: str, copy: int) -> Attempt:
    marked = text.replace("__global__", f"/* {copy} {time.time_ns()} */ __global__", 1)
    return Attempt(f"{copy}", name, f"{name}_{copy}.py", marked.encode(), None)
