"""Build CUDA programs, .cu, .cpp and .c files with a main(), for the CPU and run them in this process.

A program is built as a shared object whose main is called from here (program.cpp in simt/src), so that checks and
counters work as for an extension. exit, abort and crashes return here too. A process runs one program, once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from simt.devices import DEFAULT, DEVICES
from simt.errors import CompileError, Diagnostic, KernelError, Unsupported
from simt.frontend.declarations import Kernel
from simt.frontend.rewrite import Rewritten
from simt.frontend.source import Source
from simt.runtime.program_files import (
    CUDA,
    C,
    File,
    choose_cuda,
    choose_language,
    collect,
    find_cuda_include,
    redirect_includes,
)
from simt.toolchain import build, cache, units
from simt.toolchain.lines import add_labels, choose_place, find_source_lines
from simt.toolchain.preprocess import rewrite_taken
from simt.toolchain.runtime_library import load_runtime

# These functions return to run() instead of ending the process.
_ENDS = ("exit", "_exit", "_Exit", "quick_exit", "abort")
# Of these the runtime changes the result if simt.checking.schedules asks for it.
_CLOCKS = (
    *("clock_gettime", "gettimeofday", "time", "clock"),
    *(f"_ZNSt6chrono3_V212{name}_clock3nowEv" for name in ("steady", "system")),
)
# These give the new thread a stack for signal handlers.
_THREADS = (
    "pthread_create",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
)
_WRAPPED = [f"-Wl,--wrap={name}" for name in (*_ENDS, *_CLOCKS, *_THREADS)]


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


# ---- building ----

# The address of main, which takes two arguments or none, under the name that it has in C as well; a function that runs
# before the constructors of global objects; and one that calls atexit's functions and the destructors of global
# objects, as exit does.
_TAIL = """
#line 1 "end"
extern "C" {
extern void* __dso_handle __attribute__((visibility("hidden")));
void __cxa_finalize(void*);
__attribute__((visibility("hidden"))) int simt_program_main() __asm__("main");
extern SIMT_API void* const simt_main;
void* const simt_main = (void*)&simt_program_main;
void simt_note_program(const void*);
__attribute__((constructor(101))) static void simt_start() { simt_note_program(&simt_main); }
SIMT_API void simt_finish() { __cxa_finalize(__dso_handle); }
}
"""
# For a file that is compiled apart from CUDA's headers.
_API = '#define SIMT_API __attribute__((visibility("default")))\n'
# What host code sees of CUDA's qualifiers when it includes CUDA's headers.
_HOST_MACROS = "".join(f"#define __{name}__\n" for name in ("host", "device", "global", "forceinline"))


@dataclass(frozen=True)
class Choices:
    """How to build a program.

    flags: of the compiler: -I…, -D…, -f…, -std=… (for C files; CUDA and C++ files are C++20). links: of the linker.
    """

    mode: str = "plain"
    flags: tuple[str, ...] = ()
    device: str = DEFAULT
    links: tuple[str, ...] = ()

    @property
    def folders(self) -> list[Path]:
        """The folders to search for #include."""
        return [Path(f[2:]) for f in self.flags if f.startswith("-I")]

    def list_flags(self, language: str) -> tuple[str, ...]:
        """Return the flags for a file of one language."""
        own = (f"-I{Path(f[2:]).absolute()}" if f.startswith("-I") else f for f in self.flags)
        return tuple(f for f in own if not f.startswith("-std=") or (language == C and "++" not in f))


@dataclass
class _Part:
    """What one file of the command line contributes: its unit, and the names that it defines."""

    unit: units.Unit
    sources: list[Source]
    rewritten: list[Rewritten] = field(default_factory=list)
    kernels: dict[str, Kernel] = field(default_factory=dict)


def make(paths: Sequence[Path], choices: Choices | None = None, wait: Callable[[], None] = lambda: None) -> Program:
    """Build the program that these files are together: CUDA, C++ and C.

    wait: called before simt compiles its own parts, which happens once.
    Raises NoProgram, CompileError and its subclasses with the program's own lines, NoCompiler, NoTorch, CacheError.
    """
    choices = choices or Choices()
    parts = [_make_part(path, label, choices, len(paths) == 1) for path, label in zip(paths, _choose_labels(paths))]
    sources = [s for part in parts for s in part.sources]
    if not any(s.has_main for s in sources):
        where = paths[0].name if len(paths) == 1 else ""
        raise CompileError([Diagnostic(where, 0, 0, "error", "The program has no main(). Define one.")])
    rewritten = [r for part in parts for r in part.rewritten]
    kernels = {name: kernel for part in parts for name, kernel in part.kernels.items()}
    shared = list(dict.fromkeys(name for r in rewritten for name in r.shared))
    ends = units.declare_names(list(kernels), shared, rewritten) + _format_heads(kernels) + _TAIL
    compiled = [part.unit for part in parts]
    if len(parts) == 1 and compiled[0].header:
        compiled = [replace(compiled[0], text=compiled[0].text + ends)]
    else:
        compiled.append(units.Unit("end", _API + ends, "", (), {}, choices.mode))
    if not build.is_program_warm(choices.mode):
        wait()
    add_labels(s.label for s in sources)
    built = build.link(paths[0].name, compiled, list(kernels), shared, [*_WRAPPED, *choices.links])
    return Program(built.path, str(paths[0].with_suffix("")), {s.label: s.text for s in sources})


def _choose_labels(paths: Sequence[Path]) -> list[str]:
    """Return the files' names in messages: without folders, unless two files have the same name."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else os.path.normpath(path) for path in paths]


def _make_part(path: Path, label: str, choices: Choices, alone: bool) -> _Part:
    """Return what one file of the command line contributes."""
    files = collect(path, label, choices.folders)
    language = choose_language(path, files, alone)
    if language == CUDA:
        return _make_cuda_part(label, files, choices)
    included, sources = find_cuda_include(files), [f.source for f in files.values()]
    if language == C and included:
        source, line, text = included
        message = f"{text}: a C file cannot include CUDA's headers here. Rename {path.name} to {path.stem}.cpp."
        raise Unsupported([source.make_error(line, message)])
    main = next(iter(files.values()))
    text = (_HOST_MACROS if included else "") + _mark_start(main, main.source.text, files)
    header, mode = ("prelude_cuda" if included else ""), ("plain" if language == C else choices.mode)
    return _Part(
        units.Unit(label, text, header, choices.list_flags(language), units.number_lines(sources), mode), sources
    )


def _make_cuda_part(label: str, files: dict[Path, File], choices: Choices) -> _Part:
    """Return what a file with CUDA contributes, with the kernels of the files that it includes."""
    chosen = choose_cuda(files)
    sources = [f.source for f in chosen]
    flags, device = choices.list_flags(CUDA), DEVICES[choices.device]
    macros = units.define_macros(device.major * 100 + device.minor * 10, choices.mode)
    kernels: dict[str, Kernel] = {}

    def rewrite(each: list[Source]) -> list[Rewritten]:
        kernels.clear()
        kernels.update({name: kernel for s in each for name, kernel in s.kernels.items()})
        return units.rewrite_all(each, choices.mode, kernels)

    def write_probes(folder: Path, probes: list[str]) -> Path:
        probes[0] = macros + probes[0]
        _write(folder, {f.copy: redirect_includes(text, f, files) for f, text in zip(chosen, probes)})
        return folder / chosen[0].copy

    rewritten = rewrite_taken(sources, rewrite, write_probes, "prelude_cuda", flags)
    main, *others = [_mark_start(f, r.text, files) for f, r in zip(chosen, rewritten)]
    if others:
        flags = (f"-I{_keep({f.copy: text for f, text in zip(chosen[1:], others)})}", *flags)
    text = units.include_ptx(rewritten) + macros + units.include_early(rewritten) + main
    unit = units.Unit(label, text, "prelude_cuda", flags, units.number_lines(sources), choices.mode)
    return _Part(unit, [f.source for f in files.values()], rewritten, kernels)


def _mark_start(file: File, text: str, files: dict[Path, File]) -> str:
    return f"#line 1 {_quote(file.source.label)}\n{redirect_includes(text, file, files)}\n"


def _keep(copies: dict[str, str]) -> Path:
    """Write the rewritten headers to a folder of the cache and return it."""
    place, _ = cache.find_or_make(
        "source", cache.hash_texts(*copies, *copies.values()), lambda folder: _write(folder, copies)
    )
    return place


def _format_heads(kernels: dict[str, Kernel]) -> str:
    """Return the text that passes names and parameters of kernels to the runtime, for launches through a pointer."""
    text = "".join(f"{k.name}\\t{','.join(k.parameters)}\\t{k.line}\\t{_bounds_of(k)}\\n" for k in kernels.values())
    return f'extern "C" SIMT_API const char simt_kernel_heads[]; const char simt_kernel_heads[] = "{text}";\n'


def _bounds_of(kernel: Kernel) -> str:
    """Return the threads that __launch_bounds__ promises, or "0" where that is no plain number."""
    return kernel.bounds if kernel.bounds.isdecimal() else "0"


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


_RETURNED, _EXITED, _LEFT, _ABORTED, _CRASHED, _THREW, _NOT_LOADED, _NOT_STARTED = range(8)


_REPORTER = Path(__file__).parents[1] / "checking/last_words.py"
_MOST_LABELS = 30  # that the runtime has room for


def _load_library() -> ctypes.CDLL:
    """Load the runtime in the way that releases the interpreter's lock while the program runs."""
    library = load_runtime(ctypes.CDLL)
    library.simt_run_program.argtypes = [
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.POINTER(_End),
    ]
    library.simt_run_program.restype = None
    library.simt_take_failure.restype = ctypes.c_char_p
    return library


def run(program: Program, arguments: list[str]) -> End:
    """Run main with the program's name and the arguments. Its output goes to this process's stdout and stderr.

    Raises MemoryError where there is none for the program's stack.
    """
    library = _load_library()
    words = [os.fsencode(word) for word in (program.name, *arguments)]
    reporter = [sys.executable, str(_REPORTER), str(program.path), *list(program.texts)[:_MOST_LABELS], "--"]
    end = _End()
    library.simt_run_program(
        os.fsencode(program.path),
        (ctypes.c_char_p * (len(reporter) + 1))(*map(os.fsencode, reporter), None),
        len(words),
        (ctypes.c_char_p * (len(words) + 1))(*words, None),
        ctypes.byref(end),
    )
    text = end.text.decode(errors="replace")
    if end.how == _NOT_LOADED:
        raise cache.make_unusable_error(text)
    if end.how == _NOT_STARTED:
        raise MemoryError
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
            where = f"{place[0]}, line {place[1]}" if place else next(iter(program.texts))
            ended.messages.append(f"{text} ({where}).")
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
    code = [(module, int(offset)) for module, offset in zip(rest[0::2], rest[1::2])]
    found = find_source_lines(code)
    place = choose_place([found[each] for each in code], source, int(line), int(defined))
    if not kernel and place[1]:  # a refused copy
        message = f"{message.rstrip('.')} ({place[0]}, line {place[1]})."
    return KernelError(reason, message, kernel, *place)
