"""Counts one forward of a submission in a process of its own: `python -m grader.notebook.counting FILE PROBLEM DEVICE
RESULT`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import traceback
import types
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.problems.cases import Case
    from grader.problems.problem import Problem

BYTES = 32 << 20  # of inputs at most: the batch, then other sizes, are halved until they fit
BLOCKS = 24  # of a launch that are run and counted


class NothingToCount(Exception):
    """No kernel was launched. The text is the sentence for the student."""


def _describe(error: Exception) -> str:
    """Return what an exception says: the first error of a compiler, a sentence of simt's, or the type and the text."""
    import simt

    if isinstance(error, simt.CompileError):
        first = next((one for one in error.diagnostics if one.severity == "error"), None)
        return f"{first.source}, line {first.line}: {first.message}" if first and first.line else str(error)
    if isinstance(error, (NothingToCount, simt.BuildError, simt.KernelError)):
        return str(error)
    return f"it raised {type(error).__name__}: {error}" if str(error) else f"it raised {type(error).__name__}"


def main(file: str, problem_file: str, device: str, result: str) -> None:
    """Write RESULT: {"launches", "lines", "sizes", "lowered"} or {"error", "line"}."""
    try:
        made = count(Path(file), Path(problem_file), device)
    except Exception as error:
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        made = {"error": _describe(error)[:2000], "line": lines[-1] if lines else None}
    Path(result).write_text(json.dumps(made), encoding="utf-8")


def count(file: Path, problem_file: Path, device: str) -> dict:
    """Return the counters of one forward at the problem's own sizes, reduced where the inputs would not fit."""
    import torch

    import simt
    from grader.problems import problem as problems
    from grader.worker.device import ClearedAllocations
    from simt.runtime import torch_device
    from simt.runtime.torch_extension import cpp_extension

    sources: list[str] = []
    original = simt.load_inline

    def recording(*args, **kwargs):
        given = kwargs.get("cuda_sources", args[2] if len(args) > 2 else None) or ""
        sources.insert(0, given if isinstance(given, str) else "\n".join(given))
        return original(*args, **kwargs)

    cpp_extension.load_inline = recording
    setattr(simt, "load_inline", recording)  # noqa: B010 - simt loads its names lazily
    problem = problems.read(problem_file)
    case, lowered = fitting(problem)
    instance = problem.instantiate(case, 1)
    module = types.ModuleType("submission")
    module.__file__ = str(file)
    sys.modules["submission"] = module
    with torch_device.cuda_on_cpu():
        exec(compile(file.read_text(encoding="utf-8-sig"), str(file), "exec", dont_inherit=True), module.__dict__)
        model = module.ModelNew(*instance.init_args, **instance.init_kwargs)
    if hasattr(model, "load_reference"):
        with torch.no_grad():
            model.load_reference(instance.model)
    else:
        model.load_state_dict(instance.model.state_dict())
    counting = simt.count(sample=BLOCKS, partial=True, seconds=100.0, device=device)
    with torch.no_grad(), counting as report, torch_device.cuda_on_cpu(), ClearedAllocations():
        model(*instance.inputs)
    if not report.launches:
        raise NothingToCount("forward launches no CUDA kernel, so there is nothing to count.")
    sizes = [list(value.shape) for value in instance.inputs if isinstance(value, torch.Tensor)]
    return {
        "launches": [_launch(launch, device) for launch in report.launches],
        "lines": _lines(report),
        "sources": sources,
        "sizes": sizes,
        "lowered": lowered,
    }


def fitting(problem: Problem) -> tuple[Case, dict[str, int]]:
    """Return the full-size case, made smaller until the inputs fit in BYTES, and what was changed.

    Its batch is halved first, then its largest sizes.
    """
    from grader.problems.cases import Case

    lowered: dict[str, int] = {}
    while True:
        case = Case("counted", set=dict(lowered))
        inputs = problem.instantiate(case, 1, "meta").inputs
        if sum(value.numel() * value.element_size() for value in inputs if hasattr(value, "numel")) <= BYTES:
            return case, lowered
        sizes = {n: v for n, v in (problem.literals | lowered).items() if type(v) is int and v > 1}
        if not sizes:
            return case, lowered
        name = "batch_size" if sizes.get("batch_size", 1) > 1 else max(sizes, key=lambda one: sizes[one])
        lowered[name] = sizes[name] // 2


def _launch(launch, device: str) -> dict:
    from simt.counting import time_model as model

    prediction = model.predict(launch, device)
    c = launch.counters
    fits = launch.occupancy(device)
    shared = sum(t.conflicts for t in (c.shared_loads, c.shared_stores, c.shared_atomics))
    wide = {name: getattr(c, name) for name in ("global_loads", "global_stores", "global_atomics")}
    return {
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.shared,
        "seconds": prediction.seconds if math.isfinite(prediction.seconds) else None,
        "limit": prediction.limit,
        "occupancy": fits.ratio,
        "flops": c.flops,
        "bytes": 32 * (launch.unique_sectors_read + launch.unique_sectors_written),
        "moved": sum(32 * t.sectors for t in wide.values()),
        "requests": sum(t.requests for t in wide.values()),
        "sectors": sum(t.sectors for t in wide.values()),
        "ideal": sum(t.ideal_sectors for t in wide.values()),
        "conflicts": shared,
        "active": c.working_lanes,
        "barriers": c.barriers,
        "atomics": c.global_atomics.lanes + c.shared_atomics.lanes,
    }


def _lines(report) -> list[dict]:
    """Return the lines that move more sectors or take more wavefronts than their bytes need, the costliest first, with
    one request of each to draw.
    """
    found = []
    for line in report.lines:
        c = line.counters
        for name in ("global_loads", "global_stores", "shared_loads", "shared_stores"):
            t = getattr(c, name)
            wide = name.startswith("global")
            have, ideal = (t.sectors, t.ideal_sectors) if wide else (t.wavefronts, t.ideal_wavefronts)
            if t.requests and have > 1.05 * ideal:
                drawn = [
                    dataclasses.asdict(r) for r in getattr(line, "requests", []) if r.kind == name and r.excess > 0
                ][:1]
                found.append(
                    {
                        "kernel": line.kernel,
                        "line": line.line,
                        "kind": name,
                        "have": have / t.requests,
                        "ideal": ideal / t.requests,
                        "excess": (have - ideal) * (1 if wide else 4),
                        "requests": t.requests,
                        "drawn": drawn,
                    }
                )
    return sorted(found, key=lambda one: -one["excess"])[:6]


if __name__ == "__main__":
    main(*sys.argv[1:])
