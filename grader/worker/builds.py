"""Reports the submission's builds to the judge: when a compiler runs, what it compiles, and why it failed."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import inspect
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import simt
from grader.worker.extra_files import ExtraFiles
from grader.worker.failures import NAME, ExplainedBuildError, bound_line, describe_exception, shorten
from grader.worker.messages import MAX_NOTE, MAX_NOTE_LINE, MAX_NOTES, MAX_SOURCE, Building, Built, Note, Reply
from simt.errors import BuildError

COMPILER = "with torch.compile"  # after "compiling"
# of a build that would fail again; a linker or a cache may have lacked memory
FINAL = ("compile_error", "undeclared_function", "missing_cpp_sources", "unsupported_cuda")
MAX_ITEMS = 20  # of a list of sources that are reported one by one
NVCC = re.compile(r"^\S*?(\w+\.(?:cu|cpp))\((\d+)\): (error|warning)[^:]*: (.*)$", re.MULTILINE)
GCC = re.compile(r"^\S*?(\w+\.(?:cu|cpp)):(\d+):(?:\d+:)? (fatal error|error|warning): (.*)$", re.MULTILINE)
UNDECLARED = re.compile(r"[‘'\"](\w+)[’'\"] was not declared|identifier \"(\w+)\" is undefined")


class BuildReporter:
    """Wraps load_inline and load so that the judge learns when a compiler runs: its time is not the submission's own.

    path: of the submission. replacements: CUDA sources to compile in place of its own. built: files of the extensions
    built so far. failed: the error of each build that failed, by its arguments: a submission that goes on without the
    extension may ask for it again in each call, and what a worker is given does not change.
    """

    def __init__(self, reply: Callable[[Reply], None], gpu: bool):
        self.reply = reply
        self.gpu = gpu
        self.path = ""
        self.replacements: dict[str, str] = {}
        self.built: list[str] = []
        self.failed: dict[str, Exception] = {}
        self.reports_compiler = False
        self.files = ExtraFiles("", {}, {})

    def start(
        self,
        path: str,
        replacements: dict[str, str],
        files: dict[str, str] | None = None,
        modules: dict[str, list[str]] | None = None,
    ) -> None:
        """Forget the builds of an earlier submission; compile these replacements for this one.

        files, modules: as those of messages.Build.
        """
        self.files.remove()
        self.files = ExtraFiles(path, files or {}, modules or {})
        self.path, self.replacements, self.built, self.failed = path, replacements, [], {}
        _remove_stale_locks()

    def wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return load_inline or load with each call reported before and after it."""
        signature = inspect.signature(original)

        @functools.wraps(original)
        def reported(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            if "sources" in given:
                given |= self.files.locate(given)
                args, kwargs = (), given
            name, functions = shorten(str(given["name"]), NAME), given.get("functions")
            cpp, cuda = (
                self.files.read(given) if "sources" in given else (given.get("cpp_sources"), given.get("cuda_sources"))
            )
            sources = label_sources(cpp_sources=cpp, cuda_sources=cuda)
            key = hashlib.sha256(repr(given).encode("utf-8", "replace")).hexdigest()
            if key in self.failed:
                raise self.failed[key].with_traceback(None)
            self.reply(Building(name))
            started, failure = time.monotonic(), None
            try:
                made = original(**self._replace(given)) if self.replacements else original(*args, **kwargs)
                # With is_python_module=False the result is the path itself.
                self.built.append(made if isinstance(made, str) else str(getattr(made, "__file__", "")))
                return made
            except Exception as error:
                raised = error
                if self.gpu and isinstance(error, RuntimeError) and not isinstance(error, BuildError):
                    names = [functions] if isinstance(functions, str) else list(functions or [])
                    raised = explain_torch_build(error, name, sources, names)
                failure = describe_exception(raised, "compile_error", self.path)
                if failure.reason in FINAL:
                    self.failed[key] = raised
                if raised is error:
                    raise
                raise raised from None
            finally:
                self.reply(Built(name, time.monotonic() - started, sources, failure))

        return reported

    def wrap_compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return torch.compile with what its compiler does reported as builds: its import, and each graph."""

        @functools.wraps(original)
        def reported(*args: Any, **kwargs: Any) -> Any:
            if not self.reports_compiler:
                self.reports_compiler = True
                self.reply(Building(COMPILER))
                started = time.monotonic()
                try:
                    self._watch_compiler()
                finally:
                    self.reply(Built(COMPILER, time.monotonic() - started, {}))
            return original(*args, **kwargs)

        return reported

    def _watch_compiler(self) -> None:
        with contextlib.suppress(ImportError, AttributeError):  # versions of torch that report no begin and end
            from torch._dynamo import callback

            callback.callback_handler.register_start_callback(lambda _: self.reply(Building(COMPILER)))
            callback.callback_handler.register_end_callback(lambda _: self.reply(Built(COMPILER, 0.0, {})))

    def _replace(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return load_inline's arguments with the judge's replacements in the CUDA sources."""
        sources = given.get("cuda_sources")
        if not sources:
            return given
        listed = [sources] if isinstance(sources, str) else list(sources)
        return given | {"cuda_sources": [self.replacements.get(source, source) for source in listed]}

    @contextlib.contextmanager
    def report_variant(self, sources: simt.Sources) -> Iterator[None]:
        """Report the build that simt makes of a kernel when it is first run with checks."""
        name, started = shorten(sources.name, NAME), time.monotonic()
        labels = label_sources(cpp_sources=sources.cpp, cuda_sources=sources.cuda)
        self.reply(Building(name))
        try:
            yield
        finally:
            self.reply(Built(name, time.monotonic() - started, labels))

    def select_mutant(self, number: int) -> None:
        """Activate one edit of the CUDA sources in every extension built so far; 0 for none."""
        for path in self.built:
            with contextlib.suppress(OSError, ValueError):
                ctypes.c_int.in_dll(ctypes.CDLL(path), "grader_mutant").value = number


def _remove_stale_locks() -> None:
    """Remove the locks that a killed worker left in torch's build folder, where torch would wait for ever.

    The worker does it, before the submission runs: the folder may hold anything, and the judge lets no other worker
    build there meanwhile.
    """
    root = os.environ.get("TORCH_EXTENSIONS_DIR", "")
    with contextlib.suppress(OSError):
        for lock in Path(root).glob("*/lock") if root else ():
            lock.unlink()


def label_sources(**arguments: object) -> dict[str, str]:
    """Return load_inline's sources by the names that messages use: each whole, and of a list each item as name[i]."""
    found: dict[str, str] = {}
    for name, given in arguments.items():
        parts = [str(part) for part in given] if isinstance(given, (list, tuple)) else [str(given or "")]
        found[name] = "\n".join(parts)[:MAX_SOURCE]
        left = MAX_SOURCE
        for number, part in enumerate(parts[:MAX_ITEMS] if len(parts) > 1 else []):
            found[f"{name}[{number}]"] = part[:left]
            left -= len(part[:left])
    return found


# --- torch's own load_inline, on a GPU -------------------------------------------------------------------------------


def explain_torch_build(
    error: RuntimeError, name: str, sources: dict[str, str], functions: list[str]
) -> ExplainedBuildError:
    """Return the error of a failed build with its reason and its compilers' messages by the student's lines."""
    text = str(error)
    written = {file: _read_written(name, file) for file in ("main.cpp", "cuda.cu")}
    notes: list[Note] = []
    for match in (*NVCC.finditer(text), *GCC.finditer(text)):
        file, line, severity, message = match.groups()
        part = "cuda_sources" if file == "cuda.cu" else "cpp_sources"
        notes.append(_locate(part, int(line), severity, message, written.get(file, ""), sources.get(part, "")))
    undeclared = [m.group(1) or m.group(2) for m in UNDECLARED.finditer(text)]
    missing = [function for function in functions if function in undeclared]
    if missing and not any(note.line for note in notes):
        empty = not sources.get("cpp_sources", "").strip()
        why = "but cpp_sources is empty: the binding is made there" if empty else "which cpp_sources does not declare"
        what = (
            "Add its declaration to cpp_sources." if empty else "Declare it there, or correct the name in functions=."
        )
        message = f"functions= names `{missing[0]}`, {why}. {what}"
        reason = "missing_cpp_sources" if empty else "undeclared_function"
        notes = [Note("cpp_sources", None, "error", shorten(message, MAX_NOTE), "")]
    else:
        reason = "link_error" if "undefined reference" in text else "compile_error"
    errors = [note for note in notes if note.severity != "warning"]
    return ExplainedBuildError(error, reason, (errors or notes)[:MAX_NOTES])


def _read_written(name: str, file: str) -> str:
    """Return the newest text that torch wrote to a file of this name in its build folder, or an empty string."""
    root = os.environ.get("TORCH_EXTENSIONS_DIR", "")
    with contextlib.suppress(OSError, ValueError):
        newest = max(Path(root).rglob(f"{name}/{file}"), key=lambda path: path.stat().st_mtime)
        return newest.read_text(encoding="utf-8", errors="replace")
    return ""


def _locate(part: str, line: int, severity: str, message: str, written: str, source: str) -> Note:
    """Return the message at its line in the student's string, which torch writes below headers of its own."""
    lines = written.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    before = written.find(source) if source.strip() else -1
    own = line - written.count("\n", 0, before) if before >= 0 else 0
    inside = 0 < own <= source.count("\n") + 1
    return Note(
        part, bound_line(own) if inside else None, severity, shorten(message, MAX_NOTE), shorten(text, MAX_NOTE_LINE)
    )
