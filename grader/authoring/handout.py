"""Write the files that students edit from the solutions in kernels_ref, and check that they and the hints are sound."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path

from grader.diagnosis import hints
from grader.problems import exercises
from grader.problems.skeletons import BACKWARD, STAMP, ExerciseError, name_source, skeleton
from grader.verdict import Reason

HINT_FILES = ("hints.toml", "hints_backward.toml")
HINT_KEYS = ("steps", "passed", *(reason.value for reason in Reason))
HEAD = (
    "# The exercises as handed out, by `grader student`: students' files are compared with these if the solutions are "
    "missing."
)


def write_all() -> tuple[list[Path], list[Path]]:
    """Write kernels_student/NAME.py for every solution, and the fingerprints of all. Return (written, kept).

    A file that someone has worked on is kept: it is never overwritten; delete it to get a fresh one. Raises OSError,
    which names the file, and ExerciseError for a solution or hints that are not as they should be; nothing is written
    then.
    """
    written, kept = [], []
    folder = exercises.KERNELS_STUDENT
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(20, "it is no folder", str(folder))
    folder.mkdir(exist_ok=True)
    wanted = _make_files()
    for path, text in wanted.items():
        old = _read_student_file(path) if path.exists() else None
        if old == text:
            continue
        if old is not None and not exercises.is_untouched(old, path.stem):
            kept.append(path)
            continue
        path.write_text(text, encoding="utf-8")
        written.append(path)
    fingerprints = _make_fingerprints(wanted)
    if fingerprints != exercises.read_fingerprint_file():
        path = exercises.fingerprint_file()
        path.write_text(fingerprints, encoding="utf-8")
        written.append(path)
    return written, kept


def check_all() -> list[str]:
    """Return one sentence for each student file that is missing, differs from what its solution makes, or has none.

    Raises ExerciseError and OSError.
    """
    folder = exercises.KERNELS_STUDENT
    if folder.exists() and not folder.is_dir():
        return ["kernels_student is no folder."]
    wanted = _make_files()
    problems = []
    for path, text in wanted.items():
        if not path.exists():
            problems.append(f"{_shorten(path)} is missing.")
        elif not path.is_file() or _read_student_file(path) != text:
            problems.append(f"{_shorten(path)} is not what {name_source(path.stem)} makes.")
    for path in sorted(folder.glob("*.py")):
        if path not in wanted:
            problems.append(f"{_shorten(path)} has no {name_source(path.stem)}.")
    if _make_fingerprints(wanted) != exercises.read_fingerprint_file():
        problems.append(f"kernels_ref/{exercises.PRINTS} is not what the solutions make.")
    return problems


def check_hints(folder: Path) -> None:
    """Raise ExerciseError for hints in folder/PROBLEM/ that would not reach a student as they are meant, or OSError."""
    for path in sorted(file for name in HINT_FILES for file in folder.glob(f"*/{name}")):
        trouble = _describe_trouble(path)
        if trouble:
            raise ExerciseError(f"{'/'.join(path.parts[-3:])}: {trouble}")


def _make_files() -> dict[Path, str]:
    """Return each student file's path and text. Raises ExerciseError, for unusable hints too."""
    check_hints(exercises.KERNELS_REF)
    made = {}
    names = [path.parent.name for path in exercises.KERNELS_REF.glob("*/solution.py")]
    names += [path.parent.name + BACKWARD for path in exercises.KERNELS_REF.glob("*/backward.py")]
    for name in sorted(names):
        text = skeleton(exercises.read_solution(name), name)
        if not STAMP.search(text):
            raise ExerciseError(
                f"{name_source(name)}: nothing in it is marked, so that no exercise can be made. Put what students "
                "write between `// >>> exercise: HINT` and `// <<<`."
            )
        made[exercises.KERNELS_STUDENT / f"{name}.py"] = text
    return made


def _make_fingerprints(files: dict[Path, str]) -> str:
    """Return what skeletons.toml should hold. An exercise that is handed out without its solution keeps its line."""
    kept = {
        name: digits
        for name, digits in exercises.read_fingerprints().items()
        if not exercises.source_of(name).is_file() and (exercises.KERNELS_STUDENT / f"{name}.py").is_file()
    }
    made = {path.stem: stamp["print"] for path, text in files.items() if (stamp := STAMP.search(text))}
    return "\n".join([HEAD, *(f'{name} = "{digits}"' for name, digits in sorted((kept | made).items())), ""])


def _read_student_file(path: Path) -> str:
    """Return a student file's text.

    What is not UTF-8 becomes a sign that no exercise has, so that the file counts as worked on.
    """
    return path.read_text(encoding="utf-8", errors="replace")


def _shorten(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _describe_trouble(path: Path) -> str:
    """Return what is wrong with a file of hints, and what to do; empty where nothing is."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"line {line} is not UTF-8 text: save the file as UTF-8."
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        example = '`steps = ["First hint.", "Second hint."]`'
        return f"it is not TOML ({error}): each entry is a name and a list of texts, as in {example}."
    for key, texts in found.items():
        if key not in HINT_KEYS:
            near = difflib.get_close_matches(key, HINT_KEYS, n=1)
            what = f": did you mean `{near[0]}`?" if near else ", as a report or its JSON names it."
            return f"`{key}` is neither `steps`, `passed` nor a verdict's reason{what}"
        if not hints.are_texts(texts):
            return f'`{key}` must be a list of texts, as in `{key} = ["First hint.", "Second hint."]`.'
    return ""
