"""Find the files of a program: those that the command line names, and the user's own files that they include."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from simt.errors import Unsupported
from simt.frontend.source import Source
from simt.toolchain.headers import SIMT

CUDA, CPP, C = "CUDA", "C++", "C"  # the languages of a program's files
SUFFIXES = {".cu": CUDA, ".cpp": CPP, ".cc": CPP, ".cxx": CPP, ".c": C}
_CUDA_WORDS = re.compile(r"__(global|device|shared|constant|managed)__|<<<")
_INCLUDE = re.compile(r"""^([ \t]*\#[ \t]*include[ \t]*)(?:"([^"\n]+)"|<([^>\n]+)>)""", re.MULTILINE)
_TORCH_HEADER = re.compile(r"(torch|ATen|c10|pybind11)/")


class NoProgram(ValueError):
    """A file cannot be read as a program. The text is one sentence with the reason."""


@dataclass
class File:
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


def collect(path: Path, label: str, folders: list[Path]) -> dict[Path, File]:
    """Return the file and then the files that it includes from its own folder or from `folders` (-I).

    label: of the file in messages.
    """
    files: dict[Path, File] = {}
    waiting = [(path, label)]
    while waiting:
        place, label = waiting.pop(0)
        if place.resolve() in files:
            continue
        file = files[place.resolve()] = File(Source(read(place), label), {})
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


def choose_language(path: Path, files: dict[Path, File], alone: bool) -> str:
    """Return the language of the first of the files. A C++ file that is the whole program may contain kernels."""
    language = SUFFIXES.get(path.suffix, CUDA)
    if language == CPP and (alone or any(_CUDA_WORDS.search(f.source.text) for f in files.values())):
        return CUDA
    return language


def find_cuda_include(files: dict[Path, File]) -> tuple[Source, int, str] | None:
    """Return the source, line and text of the first #include of a header of CUDA's, or None."""
    for file in files.values():
        for match in _INCLUDE.finditer(file.source.text):
            name = match[2] or match[3]
            if name not in file.includes and (SIMT / "include/shim" / name).is_file():
                return file.source, file.source.text.count("\n", 0, match.start()) + 1, match[0].strip()
    return None


def choose_cuda(files: dict[Path, File]) -> list[File]:
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


def redirect_includes(text: str, file: File, files: dict[Path, File]) -> str:
    """Replace the name of each of the user's files in #include lines by its rewritten copy or its full path."""

    def replace(match: re.Match) -> str:
        target = file.includes.get(match[2] or match[3])
        return f'{match[1]}"{files[target].copy or target}"' if target else match[0]

    return _INCLUDE.sub(replace, text)
