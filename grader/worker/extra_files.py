"""The C++ and CUDA files that come with a submission: where load() finds them, and modules that an import builds."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CUDA_SUFFIXES = (".cu", ".cuh")


class ExtraFiles(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The files, written to a folder of the worker's own, and the finder of the modules.

    path: of the submission, which names its files by paths from its own folder. files, modules: as in messages.Build.
    """

    def __init__(self, path: str, files: Mapping[str, str], modules: Mapping[str, Sequence[str]]):
        self.place, self.modules = os.path.dirname(os.path.abspath(path)), modules
        self.folder = Path(tempfile.mkdtemp(prefix="files-")) if files else None
        for name, text in files.items():
            assert self.folder is not None
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        if modules:
            sys.meta_path.append(self)

    def remove(self) -> None:
        """Remove the folder, and find no module any more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def locate(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return load()'s arguments of paths, each that is not there replaced by that of the file or folder here."""
        found: dict[str, Any] = {}
        for name in ("sources", "extra_include_paths"):
            paths = given.get(name)
            if paths is not None:
                listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
                found[name] = [self._find(os.fspath(path)) for path in listed]
        return found

    def _find(self, path: str) -> str:
        if self.folder is None or os.path.exists(path):
            return path
        here = self.folder / os.path.relpath(os.path.join(self.place, path), self.place)
        return str(here) if here.exists() else path

    def read(self, given: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Return the texts of load()'s C++ files and of its CUDA files, as far as they can be read."""
        texts: tuple[list[str], list[str]] = ([], [])
        for path in map(str, given["sources"]):
            if os.path.isfile(path):
                texts[path.endswith(CUDA_SUFFIXES)].append(Path(path).read_text(encoding="utf-8", errors="replace"))
        return texts

    # -- modules --

    def find_spec(self, fullname: str, path=None, target=None) -> importlib.machinery.ModuleSpec | None:
        """Return where an extension of the submission's setup.py comes from: from here."""
        return importlib.util.spec_from_loader(fullname, self) if fullname in self.modules else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Build the module of its sources."""
        from torch.utils import cpp_extension

        made = cpp_extension.load(spec.name, list(self.modules[spec.name]))
        assert isinstance(made, types.ModuleType)  # load() returns a path for a library of operators alone
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module is built."""
