"""Makes checks in a notebook quick: keeps a worker that has already loaded torch, and verdicts on unchanged kernels."""

from __future__ import annotations

import ast
import atexit
import hashlib
import importlib.metadata
import os
import sys
from pathlib import Path

from grader.source import syntax
from grader.verdict import NOT_IN_TIME, Outcome, Reason, Verdict
from grader.worker import sandbox
from grader.worker.spare import Spare, list_own_files

# --- a spare worker --------------------------------------------------------------------------------------------------

SPARE, SECOND = Spare(), Spare()  # the judge's, and fault localization's
atexit.register(SPARE.close)
atexit.register(SECOND.close)


def prepare() -> None:
    """Start both workers for the file that was graded last."""
    SPARE.prepare()
    if SPARE.arguments:  # a search runs on the CPU
        submission, content, options = SPARE.arguments
        builds = sandbox.extensions(hashlib.sha256(content).hexdigest())
        SECOND.arguments = submission, content, options | {"gpu": False, "builds": builds, "required": False}
    SECOND.prepare()


# --- verdicts kept ---------------------------------------------------------------------------------------------------

# What a verdict with one of these says depends on the moment, not on the file alone.
FLEETING = {
    *(
        Reason.timeout,
        Reason.kernel_timeout,
        Reason.build_timeout,
        Reason.out_of_memory,
        Reason.crash,
        Reason.nondeterministic,
    ),
    *(Reason.no_compiler, Reason.grader_error, Reason.interrupted, Reason.inconclusive, Reason.unreadable),
}
READERS = {
    "open",
    "exec",
    "eval",
    "compile",
    "__import__",
    "import_module",
    "__file__",
    "load",
    "read_text",
    "read_bytes",
    "environ",
    "getenv",
    "fromfile",
    "memmap",
}


def keepable(verdict: Verdict) -> bool:
    """Return whether the same file would get the same verdict: not if it is about time, memory, or the machine.

    Times on a GPU are measured again.
    """
    if verdict.outcome is Outcome.not_attempted:
        return True
    return (
        verdict.outcome in (Outcome.passed, Outcome.failed)
        and verdict.reason not in FLEETING
        and verdict.device.startswith("cpu")
        and not any(NOT_IN_TIME in stage.message for stage in verdict.stages)
    )


def self_contained(source: str, folder: Path) -> bool:
    """Whether the file's text is all that it consists of: it imports installed modules only, and reads no file that we
    can see.
    """
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return True  # that is the verdict
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            if node.level:
                return False
            names = [node.module or ""]
            if any(alias.name in READERS for alias in node.names):
                return False
        if any(_local(name.split(".")[0], folder) for name in names):
            return False
        if (isinstance(node, ast.Name) and node.id in READERS) or (
            isinstance(node, ast.Attribute) and node.attr in READERS - {"compile"}
        ):
            return False
        if isinstance(node, ast.keyword) and node.arg in ("extra_include_paths", "extra_ldflags"):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and '#include "' in node.value:
            return False
    return True


def _local(name: str, folder: Path) -> bool:
    """Return whether a module is not an installed one, as far as is known without importing it."""
    if name in sys.stdlib_module_names or name in ("torch", "numpy"):
        return False
    return (
        (folder / f"{name}.py").exists()
        or (folder / name).exists()
        or name not in importlib.metadata.packages_distributions()
    )


def key(text: str, problem: Path | None, options: tuple) -> str:
    """Return a digest of everything that a verdict depends on.

    That is the file, the problem, the options, our own code, versions, and the environment.
    """
    digest = hashlib.sha256()
    parts = [
        text,
        problem.read_text(encoding="utf-8") if problem and problem.is_file() else "",
        repr(options),
        repr(list_own_files()),
    ]
    environment = sorted(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith(("SIMT", "CXX", "CUDA", "TORCH", "XDG", "PATH", "GRADER_SANDBOX"))
    )
    parts += [sys.version, importlib.metadata.version("torch"), repr(environment)]
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()
