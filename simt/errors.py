"""Define the errors of building and running CUDA C++ on the CPU; they name the student's own lines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler or of simt about a source.

    source: the argument of load_inline ("cuda_sources", "cpp_sources", "cuda_sources[1]", …);
    line, column: counted from 1 in that string (0: unknown); severity: "error", "warning" or "note";
    text: the source line itself.
    """

    source: str
    line: int
    column: int
    severity: str
    message: str
    text: str = ""

    def __str__(self) -> str:
        place = f"{self.source}, line {self.line}: " if self.line else f"{self.source}: " if self.source else ""
        return f"{place}{self.message}" + (f"\n    {self.text.strip()}" if self.text.strip() else "")


class BuildError(RuntimeError):
    """The extension could not be built."""


class NoCompiler(BuildError):
    """No usable C++ compiler is installed."""


class NoTorch(BuildError):
    """torch, whose headers and libraries builds need, is not installed."""


class CacheError(BuildError):
    """The folder that keeps built extensions cannot be written or read."""


class CompileError(BuildError):
    """A source does not compile. `diagnostics` holds the messages with their lines, the first error first."""

    def __init__(self, diagnostics: list[Diagnostic]):
        self.diagnostics = list(diagnostics)
        shown = [str(d) for d in self.diagnostics if d.severity == "error"][:5]
        super().__init__("\n".join(shown) or "The sources do not compile.")


class Unsupported(CompileError):
    """A source uses a CUDA feature that has no counterpart on the CPU."""


class UndeclaredFunction(CompileError):
    """functions= names a function that cpp_sources does not declare."""


class MissingSources(CompileError):
    """functions= names functions although cpp_sources is empty."""


class LinkError(CompileError):
    """A declared function is defined nowhere, or defined twice."""


class KernelError(RuntimeError):
    """A kernel failed at run time, or its launch was refused.

    reason: "launch_error", "out_of_bounds", "illegal_address", "misaligned", "division_by_zero", "stack_overflow",
    "barrier_divergence", "warp_divergence", "kernel_timeout" or "device_assert".
    kernel: its name; source, line: the place in the student's sources (line 0: unknown);
    block, thread: (x, y, z) indices, or None if the error belongs to no single thread.
    """

    def __init__(self, reason, message, kernel="", source="", line=0, block=None, thread=None):
        self.reason, self.message, self.kernel, self.source, self.line = reason, message, kernel, source, line
        self.block, self.thread = block, thread
        place = f" (kernel {kernel}" + (f", {source} line {line})" if line else ")") if kernel else ""
        super().__init__(message + place)


class NoGpu(RuntimeError):
    """The program uses a part of torch.cuda that works only with a GPU."""

    def __init__(self, what: str):
        super().__init__(
            f"{what} works only with a GPU, and this machine has none: the file may be right on a machine with one. "
            'Both with a GPU and without one work device="cuda", .cuda(), is_cuda, streams, events, torch.cuda.graph, '
            "torch.cuda.synchronize and the device's properties."
        )
