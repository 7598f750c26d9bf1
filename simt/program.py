"""CUDA programs, .cu files with a main of their own: builds one for the CPU and runs it inside this process.

The program becomes a shared object whose main is called from here (src/program.cpp), so that checks and counters see
it as they see an extension; exit, abort and crashes come back here too. A process runs one program, once.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import build, cache
from .devices import DEFAULT, DEVICES
from .errors import CompileError, Diagnostic, KernelError, Unsupported
from .lines import know, source_lines
from .rewrite import Kernel, kernels_of, rewrite, tokenize

_CUDA_WORDS = re.compile(r"__(global|device|shared|constant|managed)__|<<<")
_INCLUDE = re.compile(r"""^([ \t]*\#[ \t]*include[ \t]*)(?:"([^"\n]+)"|<([^>\n]+)>)""", re.MULTILINE)
_TORCH_HEADER = re.compile(r"(torch|ATen|c10|pybind11)/")
# exit and its kin come back to run().
_ENDS = [f"-Wl,--wrap={name}" for name in ("exit", "_exit", "_Exit", "quick_exit", "abort")]


class NoProgram(ValueError):
    """A file that can't be read as a program; the text says why, in one sentence."""


@dataclass(frozen=True)
class Program:
    """A built program. path: the shared object; name: what the program is told as its own; texts: its sources, by label."""

    path: Path
    name: str
    texts: dict[str, str]


@dataclass
class End:
    """How a program ended.

    status: what its process would have told the shell: of main or exit; 128 + the signal of a crash.
    said: sentences that the user has to be told: a crash, an uncaught exception, output that a GPU would have lost.
    failure: what a kernel or a launch failed with, if the program left that behind.
    orderly: ended by return or exit. texts: the program's sources, by label.
    """

    status: int
    said: list[str] = field(default_factory=list)
    failure: KernelError | None = None
    orderly: bool = True
    texts: dict[str, str] = field(default_factory=dict)


# ---- sources ----


@dataclass
class _Source:
    """One file of a program.

    label: what messages call it; includes: other files of the user's, by the names that it includes them by;
    copy: the name of its rewritten text, empty for a file without CUDA, which is compiled as it stands.
    """

    label: str
    text: str
    includes: dict[str, Path]
    copy: str = ""


def read(path: Path) -> str:
    """A source file's text. Raises NoProgram."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NoProgram(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise NoProgram(f"{path} is a folder: name a file in it.") from None
    except OSError as error:
        raise NoProgram(f"{path} can't be read: {error.strerror}.") from None
    if b"\0" in data:
        raise NoProgram(f"{path} is no text file.")
    if not data.strip():
        raise NoProgram(f"{path} is empty.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _collect(path: Path, folders: list[Path]) -> dict[Path, _Source]:
    """The file itself, first, and the files that it includes from its own folder or from `folders` (-I)."""
    sources: dict[Path, _Source] = {}
    waiting = [(path, path.name)]
    while waiting:
        file, label = waiting.pop(0)
        if file.resolve() in sources:
            continue
        source = sources[file.resolve()] = _Source(label, read(file), {})
        for match in _INCLUDE.finditer(source.text):
            name = match[2] or match[3]
            if _TORCH_HEADER.match(name):
                raise _uses_torch(source, match)
            target = next((f / name for f in ([file.parent] if match[2] else []) + folders if (f / name).is_file()), None)
            if target:
                source.includes[name] = target.resolve()
                waiting.append((target, os.path.normpath(name)))
    return sources


def _uses_torch(source: _Source, match: re.Match) -> Unsupported:
    line = source.text.count("\n", 0, match.start()) + 1
    why = "a program has no torch; run the .py file that builds this source with load_inline instead."
    return Unsupported([Diagnostic(source.label, line, 1, "error", f"{match[0].strip()}: {why}", source.text.split("\n")[line - 1])])


def _with_cuda(sources: dict[Path, _Source]) -> list[_Source]:
    """The sources to rewrite: those that hold CUDA, and those that include them."""
    chosen = {path for i, (path, s) in enumerate(sources.items()) if i == 0 or _CUDA_WORDS.search(s.text)}
    while more := {path for path, s in sources.items() if path not in chosen and not chosen.isdisjoint(s.includes.values())}:
        chosen |= more
    kept = [s for path, s in sources.items() if path in chosen]
    for i, source in enumerate(kept):
        source.copy = f"simt_{i}_{Path(source.label).name}"
    return kept


def _redirected(text: str, source: _Source, sources: dict[Path, _Source]) -> str:
    """Each #include of a file of the user's names its rewritten copy, or the file by its full path."""

    def replace(match: re.Match) -> str:
        target = source.includes.get(match[2] or match[3])
        return f'{match[1]}"{sources[target].copy or target}"' if target else match[0]

    return _INCLUDE.sub(replace, text)


def _has_main(text: str) -> bool:
    words = [t for t in tokenize(text) if t.kind not in ("space", "comment")]
    return any(
        a.kind == "word" and a.text != "return" and b.text == "main" and c.text == "(" for a, b, c in zip(words, words[1:], words[2:])
    )


# ---- building ----

# main by its address, since it takes two arguments or none; and what exit does to a program: atexit's functions and the
# destructors of global objects.
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


def make(path: Path, mode: str, flags: tuple[str, ...] = (), device: str = DEFAULT, wait: Callable[[], None] = lambda: None) -> Program:
    """Builds the program in one of build.MODES, for a device of DEVICES.

    flags: -I… and -D…; wait: called before simt compiles parts of its own, which it does once.
    Raises NoProgram, CompileError and its kinds with the program's own lines, NoCompiler, CacheError.
    """
    flags = tuple(f"-I{Path(f[2:]).absolute()}" if f.startswith("-I") else f for f in flags)
    sources = _collect(path, [Path(f[2:]) for f in flags if f.startswith("-I")])
    chosen = _with_cuda(sources)
    if not any(_has_main(s.text) for s in sources.values()):
        raise CompileError([Diagnostic(path.name, 0, 0, "error", "There is no main(): a program starts there.")])
    kernels = {name: kernel for s in chosen for name, kernel in kernels_of(s.text).items()}
    rewritten = [rewrite(s.text, s.label, mode=mode, known=kernels) for s in chosen]
    shared = list(dict.fromkeys(name for r in rewritten for name in r.shared))
    main, *others = [f"#line 1 {_quoted(s.label)}\n{_redirected(r.text, s, sources)}" for s, r in zip(chosen, rewritten)]
    if others:
        flags = (f"-I{_kept({s.copy: text for s, text in zip(chosen[1:], others)})}", *flags)
    text = build.ptx_header(rewritten) + _macros(device) + build.names(list(kernels), shared, [c for r in rewritten for c in r.constants]) + _heads(kernels) + main + _TAIL
    lines = {(s.label, n): line for s in chosen for n, line in enumerate(s.text.split("\n"), 1)}
    if not build.program_warm(mode):
        wait()
    built = build.link(path.name, [build.Unit(path.name, text, "prelude_cuda", flags, lines, mode)], list(kernels), shared, _ENDS)
    know(s.label for s in chosen)
    return Program(built.path, str(path.with_suffix("")), {s.label: s.text for s in chosen})


def _macros(device: str) -> str:
    return build.CUDA_MACROS.replace("__CUDA_ARCH__ 750", f"__CUDA_ARCH__ {DEVICES[device].major}{DEVICES[device].minor}0")


def _kept(copies: dict[str, str]) -> Path:
    """The folder with the rewritten headers."""
    place, made = cache.entry("source", cache.key_of(*copies, *copies.values()), lambda folder: _write(folder, copies))
    if made:
        cache.trim("source", 1000)
    return place


def _heads(kernels: dict[str, Kernel]) -> str:
    """What the runtime is told of kernels that are launched through a pointer."""
    text = "".join(f"{k.name}\\t{','.join(k.parameters)}\\t{k.line}\\n" for k in kernels.values())
    return f'extern "C" SIMT_API const char simt_kernel_heads[]; const char simt_kernel_heads[] = "{text}";\n'


def _quoted(label: str) -> str:
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


# ---- running ----


class _End(ctypes.Structure):
    """As in src/program.cpp."""

    _fields_ = [
        ("how", ctypes.c_int), ("status", ctypes.c_int), ("left_over", ctypes.c_int), ("told", ctypes.c_int), ("codes", ctypes.c_int),
        ("crash", ctypes.c_int), ("address", ctypes.c_ulonglong), ("code", ctypes.c_ulonglong * 16), ("text", ctypes.c_char * 480),
    ]  # fmt: skip


_RETURNED, _EXITED, _LEFT, _ABORTED, _CRASHED, _THREW, _NOT_LOADED = range(7)


def _library() -> ctypes.CDLL:
    """The runtime, without the interpreter's lock while the program runs."""
    library = ctypes.CDLL(str(build.runtime() / "libsimt_runtime.so"))
    library.simt_run_program.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(_End)]
    library.simt_run_program.restype = None
    library.simt_take_failure.restype = ctypes.c_char_p
    return library


def run(program: Program, arguments: list[str]) -> End:
    """Runs main with the program's name and the arguments; its output goes straight to this process's."""
    library = _library()
    words = [os.fsencode(word) for word in (program.name, *arguments)]
    end = _End()
    library.simt_run_program(os.fsencode(program.path), len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None), ctypes.byref(end))
    text = end.text.decode(errors="replace")
    if end.how == _NOT_LOADED:
        raise cache.unusable(text)
    told = End(end.status & 0xFF, orderly=end.how in (_RETURNED, _EXITED, _LEFT), texts=program.texts)
    if end.left_over:
        told.said.append(
            "The last lines that kernels printed would be lost on a GPU: the program ends without waiting for them (cudaDeviceSynchronize)."
        )
    if end.how == _THREW:
        told.status = 128 + signal.SIGABRT
        told.said.append(text.partition(": ")[2] if ": The assertion `" in text else f"An exception that nothing catches ended the program: {text}")
    elif end.how in (_ABORTED, _CRASHED):
        told.status = 128 + end.status
        place = _first_line([(str(program.path), code) for code in end.code[: end.codes]])
        if not end.told:
            told.said.append(text + (f" ({place[0]}, line {place[1]})" if place else "") + ".")
    told.failure = _failure(library.simt_take_failure(told.status != 0).decode(errors="replace"))
    return told


def _first_line(code: list[tuple[str, int]]) -> tuple[str, int] | None:
    """The first of these addresses, each a module and an offset in it, that lies in the program's own lines."""
    found = source_lines(code)
    return next((found[place] for place in code if found[place]), None)


def _failure(text: str) -> KernelError | None:
    if not text:
        return None
    reason, message, kernel, source, line, defined, *rest = text.split("\n")
    place = source, int(line)
    if not place[1]:
        code = [(module, int(offset)) for module, offset in zip(rest[0::2], rest[1::2])]
        place = _first_line(code) or (source, int(defined))
    if not kernel and place[1]:  # a refused copy
        message = f"{message.rstrip('.')} ({place[0]}, line {place[1]})."
    return KernelError(reason, message, kernel, *place)
