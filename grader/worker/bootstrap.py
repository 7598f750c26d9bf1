"""Load the packages grader and simt by their paths, then run the worker: `python -P bootstrap.py FD MEMORY_BYTES …`.

Python's own import system lists the folder that holds a package. A worker may not list the project's folder, which may
hold submissions.
"""

import gc
import importlib.util
import os
import runpy
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load(name: str) -> None:
    """Load a package of the project."""
    folder = os.path.join(PROJECT, name)
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None and spec.loader is not None  # the file ends in .py
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    gc.disable()  # main() enables it: collections slow the import of torch, and modules are never garbage
    sys.path.insert(0, os.getcwd())  # as for `python -m`
    for package in ("grader", "simt"):
        load(package)
    runpy.run_module("grader.worker.main", run_name="__main__", alter_sys=True)
