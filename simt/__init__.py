"""CUDA C++ on a CPU: torch's load_inline for machines without a GPU, with launches, barriers and faults as on one."""

from .cache import cache_dir
from .devices import DEVICES, Device
from .errors import (
    BuildError,
    CacheError,
    CompileError,
    Diagnostic,
    KernelError,
    LinkError,
    MissingSources,
    NoCompiler,
    UndeclaredFunction,
    Unsupported,
)
from .extension import GLOBAL_MARK, SHARED_MARK, disable, enable, load_inline, run, warm_up

__all__ = [
    "DEVICES", "BuildError", "CacheError", "CompileError", "Device", "Diagnostic", "GLOBAL_MARK", "KernelError", "LinkError",
    "MissingSources", "NoCompiler", "SHARED_MARK", "UndeclaredFunction", "Unsupported", "cache_dir", "disable",
    "enable", "load_inline", "run", "warm_up",
]
