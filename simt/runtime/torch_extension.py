"""Import torch's builder of extensions: without setuptools, and without a warning that a CUDA build finds no GPU."""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import types
from collections.abc import Iterator


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Return False for the warning that nvcc is there and a GPU is not: where simt runs kernels, that is expected."""
    return not record.getMessage().startswith("No CUDA runtime is found")


class _Setuptools(types.ModuleType):
    """Stands for setuptools and imports it when something of it is used: only a setup.py does so, and every worker
    would wait for the import.
    """

    class Command:
        """The base that BuildExtension has until it is asked for; torch then replaces it."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:  # still in the import of torch's module
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


@contextlib.contextmanager
def _without_setuptools() -> Iterator[None]:
    """Let `import setuptools` find the stand-in in the with-block, unless it has been imported."""
    if "setuptools" in sys.modules:
        yield
        return
    sys.modules["setuptools"] = _Setuptools("setuptools")
    try:
        yield
    finally:
        del sys.modules["setuptools"]


logging.getLogger("torch.utils.cpp_extension").addFilter(_is_of_interest)

try:
    with _without_setuptools():
        import torch.utils.cpp_extension as cpp_extension  # the warning comes from this import
except ImportError:  # older versions of torch derive BuildExtension from a class of setuptools
    import torch.utils.cpp_extension as cpp_extension

__all__ = ["cpp_extension"]
