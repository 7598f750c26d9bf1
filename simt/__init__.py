"""Run CUDA C++ on a CPU: torch's load_inline for machines without a GPU, with a GPU's launches, barriers and faults."""

import importlib
from typing import TYPE_CHECKING

from simt.devices import DEVICES, Device
from simt.errors import (
    BuildError,
    CacheError,
    CompileError,
    Diagnostic,
    KernelError,
    LinkError,
    MissingSources,
    NoCompiler,
    NoGpu,
    NoTorch,
    UndeclaredFunction,
    Unsupported,
)

if TYPE_CHECKING:
    from simt.checking.findings import CHECKS as CHECKS
    from simt.checking.findings import Finding as Finding
    from simt.checking.findings import Report as Report
    from simt.checking.findings import check as check
    from simt.counting.collect import count as count
    from simt.counting.counters import Counters as Counters
    from simt.counting.counters import Kernel as Kernel
    from simt.counting.counters import Launch as Launch
    from simt.counting.counters import Line as Line
    from simt.counting.counters import Request as Request
    from simt.counting.counters import Traffic as Traffic
    from simt.counting.occupancy import Occupancy as Occupancy
    from simt.counting.occupancy import occupancy as occupancy
    from simt.counting.time_model import Prediction as Prediction
    from simt.counting.time_model import predict as predict
    from simt.runtime.extension import load_inline as load_inline
    from simt.runtime.extension import run as run
    from simt.runtime.extension import take_launches as take_launches
    from simt.runtime.extension import warm_up as warm_up
    from simt.runtime.library import GLOBAL_MARK as GLOBAL_MARK
    from simt.runtime.library import SHARED_MARK as SHARED_MARK
    from simt.runtime.replacement import disable as disable
    from simt.runtime.replacement import enable as enable
    from simt.toolchain.cache import cache_dir as cache_dir
    from simt.toolchain.units import Sources as Sources

__all__ = [
    "CHECKS",
    "DEVICES",
    "GLOBAL_MARK",
    "SHARED_MARK",
    "BuildError",
    "CacheError",
    "CompileError",
    "Counters",
    "Device",
    "Diagnostic",
    "Finding",
    "Kernel",
    "KernelError",
    "Launch",
    "Line",
    "LinkError",
    "MissingSources",
    "NoCompiler",
    "NoGpu",
    "NoTorch",
    "Occupancy",
    "Prediction",
    "Report",
    "Request",
    "Sources",
    "Traffic",
    "UndeclaredFunction",
    "Unsupported",
    "cache_dir",
    "check",
    "count",
    "disable",
    "enable",
    "load_inline",
    "occupancy",
    "predict",
    "run",
    "take_launches",
    "warm_up",
]

# Imported on first use. The last of these modules imports torch, which takes a second: the grader, which only needs
# the tokens, and `python -m simt` with a .cu program do without it.
_LAZY = {
    "toolchain.units": ("Sources",),
    "toolchain.cache": ("cache_dir",),
    "checking.findings": ("CHECKS", "Finding", "Report", "check"),
    "counting.counters": ("Counters", "Kernel", "Launch", "Line", "Request", "Traffic"),
    "counting.occupancy": ("Occupancy", "occupancy"),
    "counting.collect": ("count",),
    "counting.time_model": ("Prediction", "predict"),
    "runtime.library": ("GLOBAL_MARK", "SHARED_MARK"),
    "runtime.extension": ("load_inline", "run", "take_launches", "warm_up"),
    "runtime.replacement": ("disable", "enable"),
}


def __getattr__(name: str):
    for module, names in _LAZY.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
