"""Make the skeleton of a problem, which works unchanged: a model with cases, a solution with an exercise, and hints."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import string
import sys
from pathlib import Path

from grader.paths import ROOT
from grader.problems import exercises

TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 60  # letters of a name: those of files, and of folders that builds are kept in, begin with it


class CannotMake(ValueError):
    """The problem cannot be made; str() says why and what to do."""


def problem(name: str, model: Path | None = None, folder: Path = exercises.KERNELS_REF) -> list[Path]:
    """Make folder/name/ with model.py, solution.py and hints.toml; returns their paths.

    name: a Python identifier in small letters, for the kernels are called after it. model: a KernelBench file that
    becomes model.py as it is. Raises CannotMake where the name is none, the folder exists already, or the file is no
    problem.
    """
    _check_name(name)
    place = folder / name
    if place.exists():
        raise CannotMake(f"{place} is there already; nothing was changed. Take another name, or remove it first.")
    if _importable(name):
        raise CannotMake(
            f"{name} is the name of a Python module, which kernels_student/{name}.py would stand in the way of. Take "
            "another name."
        )
    text = _checked(model) if model else (TEMPLATES / "model.py.txt").read_text(encoding="utf-8")
    files = {"model.py": text if model else string.Template(text).substitute(name=name)}
    for file in ("solution.py", "hints.toml"):
        files[file] = string.Template((TEMPLATES / f"{file}.txt").read_text(encoding="utf-8")).substitute(name=name)
    made = []
    try:
        place.mkdir(parents=True)
        for file, content in files.items():
            (place / file).write_text(content, encoding="utf-8")
            made.append(place / file)
    except OSError as error:
        shutil.rmtree(place, ignore_errors=True)
        raise CannotMake(f"{place} cannot be written ({error.strerror}); nothing was left behind.") from None
    return made


def _check_name(name: str) -> None:
    """Raise CannotMake where a name cannot be a problem's, whatever problems and modules there are."""
    if len(name) > LONGEST:
        raise CannotMake(f"{name[:20]}… has {len(name)} letters, and a name has {LONGEST} at most. Take a shorter one.")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise CannotMake(
            f"{name!r} is no name for a problem: take small letters, digits and _, beginning with a letter."
        )
    if keyword.iskeyword(name):
        raise CannotMake(f"{name} is a keyword of Python's. Take another name.")
    if name in ("model", "solution", "backward", "hints", "steps"):
        raise CannotMake(f"{name} is what a part of each problem is called. Take another name.")
    if name.endswith("_backward"):
        raise CannotMake(
            f"{name}: names that end in _backward stand for the gradients of a problem. Take another name."
        )


def _importable(name: str) -> bool:
    """Whether `import NAME` gives a module, or a package of this project. A mere folder of that name does not count."""
    if name in sys.stdlib_module_names or name in sys.modules or (ROOT / name).is_dir():
        return True
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return True  # it is there, and broken
    return found is not None and found.origin is not None


def _checked(model: Path) -> str:
    """The text of a KernelBench file."""
    from grader.problems import problem as problems
    from grader.problems.cases import ProblemError

    try:
        problems.read(model)
        return model.read_text(encoding="utf-8")
    except ProblemError as error:  # it names the file
        raise CannotMake(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CannotMake(f"{model}: {error}") from None
