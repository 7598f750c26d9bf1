"""Makes the skeleton of a problem, which works as it stands: a model with cases, a solution with an exercise in it, and hints."""

from __future__ import annotations

import keyword
import re
import shutil
import string
from pathlib import Path

from grader import student

TEMPLATES = Path(__file__).parent / "templates"


class CannotMake(ValueError):
    """The problem cannot be made; str() says why and what to do."""


def problem(name: str, model: Path | None = None, folder: Path = student.KERNELS_REF) -> list[Path]:
    """Make folder/name/ with model.py, solution.py and hints.toml; returns their paths.

    name: a Python identifier in small letters, for the kernels are called after it. model: a KernelBench file that becomes
    model.py as it is. Raises CannotMake where the name is none, the folder exists already, or the file is no problem.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise CannotMake(f"{name!r} is no name for a problem: take small letters, digits and _, beginning with a letter.")
    if name.endswith("_backward"):
        raise CannotMake(f"{name}: names that end in _backward stand for the gradients of a problem. Take another name.")
    place = folder / name
    if place.exists():
        raise CannotMake(f"{place} is there already; nothing was changed. Take another name, or remove it first.")
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


def _checked(model: Path) -> str:
    """The text of a KernelBench file."""
    from grader import problem as problems
    from grader.cases import ProblemError

    try:
        problems.read(model)
        return model.read_text(encoding="utf-8")
    except ProblemError as error:  # it names the file
        raise CannotMake(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CannotMake(f"{model}: {error}") from None
