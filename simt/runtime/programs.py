"""Build CUDA programs, .cu files with a main(), for the CPU and run them in this process.

A program is built as a shared object whose main is called from here (program.cpp in simt/src), so that checks and
counters work as for an extension. exit, abort and crashes return here too. A process runs one program, once.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from simt.devices import DEFAULT, DEVICES
from simt.errors import CompileError, Diagnostic, KernelError, Unsupported
from simt.frontend.declarations import Kernel
from simt.frontend.source import Source
from simt.toolchain import build, cache, units
from simt.toolchain.lines import add_labels, find_source_lines
from simt.toolchain.runtime_library import build_runtime

_CUDA_WORDS = re.compile(r"__(global|device|shared|constant|managed)__|<<<")
_INCLUDE = re.compile(r"""^([ \t]*\#[ \t]*include[ \t]*)(?:"([^"\n]+)"|<([^>\n]+)>)""", re.MULTILINE)
_TORCH_HEADER = re.compile(r"(torch|ATen|c10|pybind11)/")
# These functions return to run() instead of ending the process.
_ENDS = ("exit", "_exit", "_Exit", "quick_exit", "abort")
# Of these the runtime changes the result if simt.checking.schedules asks for it.
_CLOCKS = (
    *("clock_gettime", "gettimeofday", "time", "clock"),
    *(f"_ZNSt6chrono3_V212{name}_clock3nowEv" for name in ("steady", "system")),
)
_WRAPPED = [f"-Wl,--wrap={name}" for name in (*_ENDS, *_CLOCKS)]


class NoProgram(ValueError):
    """A file cannot be read as a program. The text is one sentence with the reason."""


@dataclass(frozen=True)
class Program:
    """A built program. path: the shared object; name: argv[0]; texts: the sources by label."""

    path: Path
    name: str
    texts: dict[str, str]


@dataclass
class End:
    """How a program ended.

    status: the exit status: that of main or exit, or 128 + the number of the signal of a crash.
    messages: sentences for the user: a crash, an uncaught exception, output that a GPU would have lost.
    failure: the error of a kernel or a launch, if the program did not handle it.
    orderly: whether the program ended by return or exit. texts: the program's sources by label.
    """

    status: int
    messages: list[str] = field(default_factory=list)
    failure: KernelError | None = None
    orderly: bool = True
    texts: dict[str, str] = field(default_factory=dict)


# ---- sources ----


@dataclass
class _File:
    """One file of a program.

    includes: the user's other files, by their names in #include lines. copy: the name of the rewritten text, or "" for
    a file without CUDA, which is compiled unchanged.
    """

    source: Source
    includes: dict[str, Path]
    copy: str = ""


def read(path: Path) -> str:
    """Return a source file's text. Raises NoProgram."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NoProgram(f"{path} does not exist.") from None
    except IsADirectoryError:
        raise NoProgram(f"{path} is a folder. Name a file in it.") from None
    except OSError as error:
        raise NoProgram(f"{path} cannot be read: {error.strerror}.") from None
    if b"\0" in data:
        raise NoProgram(f"{path} is not a text file.")
    if not data.strip():
        raise NoProgram(f"{path} is empty.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _collect(path: Path, folders: list[Path]) -> dict[Path, _File]:
    """Return the file and then the files that it includes from its own folder or from `folders` (-I)."""
    files: dict[Path, _File] = {}
    waiting = [(path, path.name)]
    while waiting:
        place, label = waiting.pop(0)
        if place.resolve() in files:
            continue
        file = files[place.resolve()] = _File(Source(read(place), label), {})
        for match in _INCLUDE.finditer(file.source.text):
            name = match[2] or match[3]
            if _TORCH_HEADER.match(name):
                why = "a program cannot use torch. Run the .py file that builds this source with load_inline instead."
                line = file.source.text.count("\n", 0, match.start()) + 1
                raise Unsupported([file.source.make_error(line, f"{match[0].strip()}: {why}")])
            target = next(
                (f / name for f in ([place.parent] if match[2] else []) + folders if (f / name).is_file()), None
            )
            if target:
                file.includes[name] = target.resolve()
                waiting.append((target, os.path.normpath(name)))
    return files


def _choose_cuda(files: dict[Path, _File]) -> list[_File]:
    """Return the files to rewrite: those that contain CUDA, and those that include them."""
    chosen = {path for i, (path, f) in enumerate(files.items()) if i == 0 or _CUDA_WORDS.search(f.source.text)}
    while more := {
        path for path, f in files.items() if path not in chosen and not chosen.isdisjoint(f.includes.values())
    }:
        chosen |= more
    kept = [f for path, f in files.items() if path in chosen]
    for i, file in enumerate(kept):
        file.copy = f"simt_{i}_{Path(file.source.label).name}"
    return kept


def _redirect_includes(text: str, file: _File, files: dict[Path, _File]) -> str:
    """Replace the name of each of the user's files in #include lines by its rewritten copy or its full path."""

    def replace(match: re.Match) -> str:
        target = file.includes.get(match[2] or match[3])
        return f'{match[1]}"{files[target].copy or target}"' if target else match[0]

    return _INCLUDE.sub(replace, text)


# ---- building ----

# The address of main, which takes two arguments or none; and a function that calls atexit's functions and the
# destructors of global objects, as exit does.
_TAIL = """
#line 1 "end"
extern "C" {
extern void* __dso_handle __attribute__((visibility("hidden")));
void __cxa_finalize(void*);
extern SIMT_API void* const simt_main;
void* const simt_main = (void*)&main;
SIMT_API void simt_finish() { __cxa_finalize(__dso_handle); }
}
"""


def make(
    path: Path, mode: str, flags: tuple[str, ...] = (), device: str = DEFAULT, wait: Callable[[], None] = lambda: None
) -> Program:
    """Build the program in one of MODES, for a device of DEVICES.

    flags: -I… and -D…; wait: called before simt compiles its own parts, which happens once.
    Raises NoProgram, CompileError and its subclasses with the program's own lines, NoCompiler, NoTorch, CacheError.
    """
    flags = tuple(f"-I{Path(f[2:]).absolute()}" if f.startswith("-I") else f for f in flags)
    files = _collect(path, [Path(f[2:]) for f in flags if f.startswith("-I")])
    chosen = _choose_cuda(files)
    sources = [f.source for f in chosen]
    if not any(f.source.has_main for f in files.values()):
        raise CompileError([Diagnostic(path.name, 0, 0, "error", "The program has no main(). Define one.")])
    kernels = {name: kernel for s in sources for name, kernel in s.kernels.items()}
    rewritten = units.rewrite_all(sources, mode, kernels)
    shared = list(dict.fromkeys(name for r in rewritten for name in r.shared))
    main, *others = [
        f"#line 1 {_quote(r.source.label)}\n{_redirect_includes(r.text, f, files)}" for f, r in zip(chosen, rewritten)
    ]
    if others:
        flags = (f"-I{_keep({f.copy: text for f, text in zip(chosen[1:], others)})}", *flags)
    text = (
        units.include_ptx(rewritten)
        + units.define_macros(DEVICES[device].major * 100 + DEVICES[device].minor * 10, mode)
        + units.declare_names(list(kernels), shared, [c for r in rewritten for c in r.constants])
        + _format_heads(kernels)
        + main
        + _TAIL
    )
    if not build.is_program_warm(mode):
        wait()
    unit = units.Unit(path.name, text, "prelude_cuda", flags, units.number_lines(sources), mode)
    built = build.link(path.name, [unit], list(kernels), shared, _WRAPPED)
    add_labels(s.label for s in sources)
    return Program(built.path, str(path.with_suffix("")), {s.label: s.text for s in sources})


def _keep(copies: dict[str, str]) -> Path:
    """Write the rewritten headers to a folder of the cache and return it."""
    place, made = cache.find_or_make(
        "source", cache.hash_texts(*copies, *copies.values()), lambda folder: _write(folder, copies)
    )
    if made:
        cache.trim("source", 1000)
    return place


def _format_heads(kernels: dict[str, Kernel]) -> str:
    """Return the text that passes names and parameters of kernels to the runtime, for launches through a pointer."""
    text = "".join(f"{k.name}\\t{','.join(k.parameters)}\\t{k.line}\\n" for k in kernels.values())
    return f'extern "C" SIMT_API const char simt_kernel_heads[]; const char simt_kernel_heads[] = "{text}";\n'


def _quote(label: str) -> str:
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


# ---- running ----


class _End(ctypes.Structure):
    """The struct End of program.cpp in simt/src."""

    _fields_ = [
        ("how", ctypes.c_int), ("status", ctypes.c_int), ("left_over", ctypes.c_int), ("reported", ctypes.c_int),
        ("codes", ctypes.c_int), ("crash", ctypes.c_int), ("address", ctypes.c_ulonglong),
        ("code", ctypes.c_ulonglong * 16), ("text", ctypes.c_char * 480),
    ]  # fmt: skip


_RETURNED, _EXITED, _LEFT, _ABORTED, _CRASHED, _THREW, _NOT_LOADED = range(7)


def _load_library() -> ctypes.CDLL:
    """Load the runtime in the way that releases the interpreter's lock while the program runs."""
    library = ctypes.CDLL(str(build_runtime() / "libsimt_runtime.so"))
    library.simt_run_program.argtypes = [
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.POINTER(_End),
    ]
    library.simt_run_program.restype = None
    library.simt_take_failure.restype = ctypes.c_char_p
    return library


def run(program: Program, arguments: list[str]) -> End:
    """Run main with the program's name and the arguments. Its output goes to this process's stdout and stderr."""
    library = _load_library()
    words = [os.fsencode(word) for word in (program.name, *arguments)]
    end = _End()
    library.simt_run_program(
        os.fsencode(program.path), len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None), ctypes.byref(end)
    )
    text = end.text.decode(errors="replace")
    if end.how == _NOT_LOADED:
        raise cache.make_unusable_error(text)
    ended = End(end.status & 0xFF, orderly=end.how in (_RETURNED, _EXITED, _LEFT), texts=program.texts)
    if end.left_over:
        ended.messages.append(
            "On a GPU the last lines that kernels printed would be lost. Call cudaDeviceSynchronize() before the "
            "program ends."
        )
    if end.how == _THREW:
        ended.status = 128 + signal.SIGABRT
        ended.messages.append(
            text.partition(": ")[2]
            if ": The assertion `" in text
            else f"An uncaught exception ended the program: {text}"
        )
    elif end.how in (_ABORTED, _CRASHED):
        ended.status = 128 + end.status
        place = _find_first_line([(str(program.path), code) for code in end.code[: end.codes]])
        if not end.reported:
            ended.messages.append(text + (f" ({place[0]}, line {place[1]})" if place else "") + ".")
    ended.failure = _read_failure(library.simt_take_failure(ended.status != 0).decode(errors="replace"))
    return ended


def _find_first_line(code: list[tuple[str, int]]) -> tuple[str, int] | None:
    """Return the line of the first (module, offset) that is in the program's own sources, or None."""
    found = find_source_lines(code)
    return next((found[place] for place in code if found[place]), None)


def _read_failure(text: str) -> KernelError | None:
    if not text:
        return None
    reason, message, kernel, source, line, defined, *rest = text.split("\n")
    place = source, int(line)
    if not place[1]:
        code = [(module, int(offset)) for module, offset in zip(rest[0::2], rest[1::2])]
        place = _find_first_line(code) or (source, int(defined))
    if not kernel and place[1]:  # a refused copy
        message = f"{message.rstrip('.')} ({place[0]}, line {place[1]})."
    return KernelError(reason, message, kernel, *place)
