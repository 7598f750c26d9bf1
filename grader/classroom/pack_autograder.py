"""Pack an autograder for Gradescope: the grader, the problems, the rules, and scripts that install and run them."""

from __future__ import annotations

import json
import re
import secrets
import string
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from grader.classroom.autograde import AT_FAULT, SETTINGS, Settings
from grader.classroom.course import Course, CourseError
from grader.classroom.platforms import list_possible, make_failure
from grader.paths import KERNELS_REF, ROOT
from grader.problems.exercises import PRINTS, problems
from grader.problems.skeletons import problem_of

TEMPLATES = Path(__file__).parent / "templates"
COURSE = PurePosixPath("course")  # in the zip: where the checkout's folders lie
RULES = COURSE / "rules"
MEMORY = 768  # MB that Gradescope's default container has
SECONDS = 540  # before Gradescope's own limit of ten minutes, after which nobody learns anything
# The packages that a grading imports, with all that they need themselves; requirements.lock has their versions.
PACKAGES = (
    "setuptools ninja numpy msgspec click rich filelock pyyaml jinja2 markdown-it-py mdurl pygments markupsafe "
    "typing_extensions sympy mpmath networkx fsspec"
).split()
EXECUTABLE, PLAIN = 0o100755, 0o100644


@dataclass(frozen=True)
class Packed:
    """What an autograder holds. points: that its problems can earn in Gradescope's container."""

    files: int
    points: float


def make_autograder(
    file: Path, chosen: Sequence[str], course: Course, folder: Path, visibility: str, require_sandbox: bool
) -> Packed:
    """Write the zip. folder: of the course. Raises CourseError for unknown problems, OSError."""
    if unknown := [name for name in chosen if name not in course.problems]:
        raise CourseError(f"The course has no problem {unknown[0]}: it has {', '.join(course.problems)}.")
    names = list(dict.fromkeys(chosen))
    entries: dict[str, tuple[bytes, int]] = {}
    for package in ("grader", "simt"):
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                entries[str(COURSE / path.relative_to(ROOT).as_posix())] = path.read_bytes(), PLAIN
    for name in names:
        entries |= _read_problem(name, course, folder)
    if (KERNELS_REF / PRINTS).is_file():
        entries[str(COURSE / "kernels_ref" / PRINTS)] = (KERNELS_REF / PRINTS).read_bytes(), PLAIN
    settings = Settings(_cut_rules(course, names), visibility, require_sandbox, secrets.token_hex(16))
    entries[str(RULES / SETTINGS)] = msgspec.json.encode(settings), PLAIN
    entries |= _make_scripts(require_sandbox)
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in entries.items():
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    points = sum(sum(list_possible(course.points_of(name), course.speed_of(name)).values()) for name in names)
    return Packed(len(entries), points)


def _read_problem(name: str, course: Course, folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return the files of a problem: its model.py, without solution, steps or hints."""
    given = course.problems[name].file
    if given:
        return {str(RULES / "problems" / f"{name}.py"): ((folder / given).read_bytes(), PLAIN)}
    problem = problem_of(name) if problem_of(name) in problems() else name
    path = KERNELS_REF / problem / "model.py"
    return {str(COURSE / path.relative_to(ROOT).as_posix()): (path.read_bytes(), PLAIN)}


def _cut_rules(course: Course, names: Sequence[str]) -> Course:
    """Return the course with these problems alone, whose own files lie in problems/, and without deadlines."""
    rules = {}
    for name in names:
        given = course.problems[name]
        file = f"problems/{name}.py" if given.file else None
        rules[name] = msgspec.structs.replace(given, due=None, file=file)
    return msgspec.structs.replace(course, problems=rules)


def _make_scripts(require_sandbox: bool) -> dict[str, tuple[bytes, int]]:
    lock = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.M))
    versions = {name.lower().replace("_", "-"): version for name, version in lock.items()}
    failure = make_failure(
        f"The grader was stopped: it ran longer than {SECONDS} seconds, or needed more memory than the container has. "
        f"{AT_FAULT}"
    )
    values = {
        "torch": versions["torch"],
        "require_sandbox": str(require_sandbox),
        "memory": MEMORY,
        "seconds": SECONDS,
        "failure": json.dumps(failure),
    }
    lines = [f"{name}=={versions[name.replace('_', '-')]}" for name in PACKAGES]
    made = {"requirements.txt": ("\n".join([*lines, ""]).encode(), PLAIN)}
    for name, mode in (("setup.sh", EXECUTABLE), ("run_autograder", EXECUTABLE), ("environment.sh", PLAIN)):
        text = (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
        made[name] = string.Template(text).substitute(values).encode(), mode
    return made
