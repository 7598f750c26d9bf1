"""Find the C++ and CUDA files next to a submission that it builds with load() or that a setup.py builds for it.

They are read by the judge, like the submission, and sent to its worker, which sees no other file of their folder.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from pathlib import Path, PurePosixPath

from grader.source import syntax
from grader.source.contract import Source, read_bytes

SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".inl")
EXTENSIONS = ("CUDAExtension", "CppExtension")
MOST_FILES, MOST_BYTES = 32, 1 << 20
MOST_FOLDERS = 8  # that the file names, in which a named file is looked for
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


@dataclasses.dataclass
class Companions:
    """texts: of each file, by its path from the submission's folder. modules: sources of each extension of setup.py."""

    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    modules: dict[str, list[str]] = dataclasses.field(default_factory=dict)


def find_companions(source: Source, folder: Path) -> Companions:
    """Return the files in the submission's folder, or below it, that the submission names, and what these include.

    A module that the submission imports and a setup.py there builds brings its sources along. No link is followed.
    """
    found = Companions()
    try:
        tree = syntax.parse(source.text, str(source.path))
    except (SyntaxError, ValueError):
        return found
    constants = _list_constants(tree)
    named = [text for text in constants if text.endswith(SUFFIXES)]
    imported = _list_imported(tree)
    found.modules = {name: paths for name, paths in _read_setup(folder).items() if name in imported}
    named += [path for paths in found.modules.values() for path in paths]
    if not named:
        return found
    folders = ["", *[text for text in constants if _is_inside(text) and (folder / text).is_dir()][:MOST_FOLDERS]]
    waiting = [os.path.normpath(os.path.join(each, name)) for name in named for each in folders]
    while waiting and len(found.texts) < MOST_FILES:
        name = waiting.pop(0)
        text = _read(folder, name) if name not in found.texts else None
        if text is None or sum(map(len, found.texts.values())) + len(text) > MOST_BYTES:
            continue
        found.texts[name] = text
        here = str(PurePosixPath(name).parent)
        waiting += [os.path.normpath(os.path.join(at, one)) for one in INCLUDE.findall(text) for at in (here, *folders)]
    return found


def _list_constants(tree: ast.AST) -> list[str]:
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return list(dict.fromkeys(text for text in texts if 0 < len(text) < 200 and "\n" not in text))


def _list_imported(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def _read_setup(folder: Path) -> dict[str, list[str]]:
    """Return the extensions that a setup.py builds, with their sources, as far as both are written out."""
    try:
        tree = syntax.parse(_read(folder, "setup.py") or "", "setup.py")
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, list[str]] = {}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called not in EXTENSIONS:
            continue
        given = dict(zip(("name", "sources"), call.args)) | {one.arg: one.value for one in call.keywords if one.arg}
        name, sources = given.get("name"), given.get("sources")
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and sources is not None:
            found[name.value] = [text for text in _list_constants(sources) if text.endswith(SUFFIXES)]
    return found


def _is_inside(name: str) -> bool:
    return not os.path.isabs(name) and ".." not in Path(name).parts and "\0" not in name


def _read(folder: Path, name: str) -> str | None:
    """Return the text of a file in the folder; None if there is none that can be read."""
    if not _is_inside(name):
        return None
    try:
        return read_bytes(folder / name, folder).decode("utf-8-sig")
    except (OSError, ValueError):
        return None
