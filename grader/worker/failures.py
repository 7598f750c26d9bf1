"""Turns an exception of a submission into the Failure that the judge receives."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Sequence

import torch

import simt
from grader.worker.claims import KERNEL_REASONS
from grader.worker.messages import (
    MAX_CUT,
    MAX_FINDINGS,
    MAX_LINE,
    MAX_NAME,
    MAX_NOTE,
    MAX_NOTE_LINE,
    MAX_NOTES,
    MAX_TEXT,
    Failure,
    Found,
    Note,
)
from simt.runtime.torch_replaced import has_gpu
from simt.toolchain.diagnostics import read_load_error

NAME = MAX_NAME - MAX_CUT  # characters of a name

# The text of a CUDA error -> its reason.
CUDA_ERRORS = {
    "an illegal memory access": "illegal_address",
    "invalid global address": "illegal_address",
    "misaligned address": "misaligned",
    "device-side assert": "device_assert",
    "invalid configuration argument": "launch_error",
    "invalid argument": "launch_error",
    "too many resources requested": "launch_error",
    "no kernel image": "launch_error",
    "the launch timed out": "kernel_timeout",
    "stack overflow": "stack_overflow",
    "unspecified launch failure": "illegal_address",
}
# What torch's own errors say if a program needs a GPU.
NEEDS_GPU = (
    "Torch not compiled with CUDA enabled",
    "'CUDA' backend",
    "not linked with support for cuda",
    "Found no NVIDIA driver",
    "Cannot access accelerator device",
    "No CUDA GPUs are available",
)
OUT_OF_MEMORY = ("can't allocate memory", "There is no memory for", "not enough memory", "CUDA out of memory")


class ExplainedBuildError(RuntimeError):
    """A failed build of torch's own load_inline, with its reason and the compiler's messages by the student's lines."""

    def __init__(self, error: RuntimeError, reason: str, notes: list[Note]):
        super().__init__(*error.args)
        self.reason, self.notes = reason, notes


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Return both ends of a long text, without characters that UTF-8 cannot encode."""
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[: limit // 2] + "\n[...]\n" + text[-limit // 2 :]


def find_line(error: BaseException, path: str) -> int | None:
    """Return the innermost line of the submission in the traceback, or None."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    return lines[-1] if lines else None


def describe_exception(error: BaseException, reason: str, path: str) -> Failure:
    """Return the Failure for an exception; `reason` is used where the exception does not tell a better one."""
    try:
        text = shorten(str(error))
    except Exception:
        text = "(its message could not be read)"
    failure = Failure(reason, shorten(type(error).__name__, NAME), text, find_line(error, path))
    try:
        _specify(failure, error)
    except Exception:  # attributes of an error that the submission made itself
        failure = Failure(reason, failure.kind, text, failure.line)
    return failure


def _specify(failure: Failure, error: BaseException) -> None:
    """Add to a Failure what errors of simt, of memory, of CUDA and of the compiler tell."""
    if isinstance(error, ExplainedBuildError):
        failure.reason, failure.notes, failure.kind = error.reason, error.notes, "RuntimeError"
    elif isinstance(error, simt.BuildError):
        failure.reason, failure.notes = _compile_reason(error), _diagnostics(error)
    elif isinstance(error, simt.KernelError):
        _add_kernel(failure, error)
    elif isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _mentions_memory(failure.message):
        failure.reason = "out_of_memory"
    elif any(words in failure.message for words in NEEDS_GPU) and not has_gpu():
        failure.message = f"{simt.NoGpu('This call')} torch says: {failure.message}"
    elif isinstance(error, RuntimeError) and "CUDA" in failure.message:
        _add_cuda_reason(failure)
    elif isinstance(error, ImportError) and (message := read_load_error(failure.message)):
        failure.reason = "link_error"
        failure.notes = [Note("", None, "error", shorten(message, MAX_NOTE), "")]
    elif isinstance(error, SystemExit):
        code = repr(error.code) if isinstance(error.code, str | int) else failure.message
        failure.message = shorten(f"the code called exit({code})")


def _mentions_memory(message: str) -> bool:
    return any(words in message for words in OUT_OF_MEMORY)


def _add_cuda_reason(failure: Failure) -> None:
    for words, reason in CUDA_ERRORS.items():
        if words in failure.message:
            failure.reason = reason
            failure.message = failure.message.splitlines()[0]
            failure.broken = reason != "launch_error"


def _compile_reason(error: simt.BuildError) -> str:
    for kind, reason in (
        (simt.UndeclaredFunction, "undeclared_function"),
        (simt.MissingSources, "missing_cpp_sources"),
        (simt.Unsupported, "unsupported_cuda"),
        (simt.LinkError, "link_error"),
        (simt.NoCompiler, "no_compiler"),
        (simt.CacheError, "grader_error"),
    ):
        if isinstance(error, kind):
            return reason
    return "compile_error"


def _diagnostics(error: simt.BuildError) -> list[Note]:
    notes: list[Note] = []
    for seen in list(getattr(error, "diagnostics", None) or [])[:MAX_NOTES]:
        message, text = shorten(seen.message, MAX_NOTE), shorten(seen.text, MAX_NOTE_LINE)
        line = bound_line(seen.line)
        notes.append(Note(shorten(seen.source, NAME), line or None, shorten(seen.severity, NAME), message, text))
    return notes


def _add_kernel(failure: Failure, error: simt.KernelError) -> None:
    if error.reason in KERNEL_REASONS:
        failure.reason = error.reason
    failure.message = shorten(error.message)
    failure.kernel, failure.source = shorten(error.kernel, NAME) or None, shorten(error.source, NAME) or None
    failure.source_line = bound_line(error.line) or None
    failure.block, failure.thread = _position(error.block), _position(error.thread)


def bound_line(line: int) -> int:
    """Return a line number as the protocol sends it: 0 for one that cannot be."""
    return int(line) if 0 <= line <= MAX_LINE else 0


def _position(values: Sequence[int] | None) -> list[int] | None:
    """Return the (x, y, z) of a block or a thread; None for anything else."""
    return [int(value) for value in values] if values is not None and len(values) == 3 and min(values) >= 0 else None


def describe_findings(report: simt.Report) -> list[Found]:
    """Return the errors that simt's checks found, as the protocol sends them."""
    return [
        Found(
            f.check,
            shorten(f.message),
            shorten(f.kernel, NAME),
            shorten(f.source, NAME),
            bound_line(f.line),
            _position(f.block),
            _position(f.thread),
        )
        for f in report.errors[:MAX_FINDINGS]
    ]


def classify_backward_error(error: BaseException) -> str:
    """Return the reason for an exception of torch.autograd.grad, by the words of its message."""
    with contextlib.suppress(Exception):
        if "returned an invalid gradient at index" in str(error):
            return "gradient_shape"
        if "modified by an inplace operation" in str(error):
            return "saved_overwritten"
    return "backward_exception"
