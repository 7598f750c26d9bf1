"""Make what students get: lessons and exercises with all that they need, and no solution."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import string
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.authoring.answers import Answers
from grader.authoring.cuts import CutError, cut_exercise, cut_notebook, find_set
from grader.authoring.handout import HEAD
from grader.authoring.leaks import Leaks, find_leaks
from grader.paths import ROOT
from grader.problems import exercises
from grader.problems.skeletons import BACKWARD, STAMP, problem_of

TEMPLATES = Path(__file__).parent / "templates"
WHOLE = ("grader", "simt", "lessons")  # folders that leave with all their files, except notebooks that are not chosen
FILES = ("LICENSE", "pyproject.toml", "requirements.lock", "environment.yml", ".gitignore")
NOT_NEEDED = ("lessons/README.md",)  # it links to lessons and pages that do not leave
IGNORED = {"__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache"}
# What the project's Makefile has for its contributors.
MAKE_TARGETS = ("demo", "lint", "test", "test-all", "bench")
MAKE_NAMES = ("RIGHT", "WRONG", "GROUPNORMS", "STATUS", "VERDICTS", "SOURCES")
AUTHOR = ("-c", "user.name=Course", "-c", "user.email=course@localhost")  # of the one commit


class ReleaseError(ValueError):
    """A release that cannot be made; the text says why and what to do."""


class LeakError(ReleaseError):
    """A release that would give answers away."""

    def __init__(self, leaks: Leaks):
        super().__init__("The release gives answers away; nothing was written.")
        self.leaks = leaks


@dataclass
class Choice:
    """What is released: notebooks with the exercises that each sets, and all exercises."""

    lessons: dict[Path, list[str]] = field(default_factory=dict)
    exercises: list[str] = field(default_factory=list)


def choose(wanted: Sequence[str], root: Path = ROOT) -> Choice:
    """Return the lessons and exercises of these names; all if there are none.

    A lesson is called 3, 03, or by its file's name. An exercise that no lesson sets leaves with its own name, or with
    all; a NAME_backward also with the lesson of NAME, or with the first that sets gradients, whichever is later.

    Raises ReleaseError for a name that is none.
    """
    found = {path: find_set(path.read_text(encoding="utf-8")) for path in sorted((root / "lessons").glob("*.ipynb"))}
    known = exercises.exercises()
    sets = {path: [name for name in dict.fromkeys(names) if name in known] for path, names in found.items()}
    order = list(sets)
    first = {name: order.index(path) for path in order for name in sets[path]}
    gradients = min((at for name, at in first.items() if name.endswith(BACKWARD)), default=0)
    for name in known:
        if name.endswith(BACKWARD) and name not in first and problem_of(name) in first:
            sets[order[max(gradients, first[problem_of(name)])]].append(name)
    if not wanted:
        return Choice(sets, known)
    choice = Choice()
    for word in wanted:
        if word in known:
            choice.exercises.append(word)
            continue
        lesson = next((path for path in order if word in _name_lesson(path)), None)
        if lesson is None:
            raise ReleaseError(
                f"{word} is neither a lesson, such as 3 or {order[0].stem if order else '…'}, nor one of "
                f"the exercises {', '.join(known)}."
            )
        choice.lessons[lesson] = sets[lesson]
    names = {*choice.exercises, *(name for sets_ in choice.lessons.values() for name in sets_)}
    return Choice(dict(sorted(choice.lessons.items())), [name for name in known if name in names])


def _name_lesson(path: Path) -> set[str]:
    number = path.stem.partition("_")[0]
    return {path.stem, path.name, number, number.lstrip("0")}


def make_release(
    choice: Choice, folder: Path | None, archive: Path | None, solved: Sequence[str] = (), root: Path = ROOT
) -> Leaks:
    """Write a release as a git repository, a zip, or both; return what its lessons show of answers on purpose.

    solved: exercises whose answers students may see. Raises LeakError and ReleaseError, with nothing written, and
    OSError.
    """
    _check_targets(folder, archive)
    answers = Answers(name for name in exercises.exercises() if name not in solved)
    with tempfile.TemporaryDirectory(prefix="release-") as made:
        tree = Path(made) / "course"
        tree.mkdir()
        _copy(choice, tree, root)
        _write_exercises(choice, answers, tree, root)
        _write_pages(choice, tree, root)
        leaks = find_leaks(tree, answers, solved, root)
        if leaks:
            raise LeakError(leaks)
        packed = Path(made) / "packed.zip"
        if archive:
            _write_zip(tree, packed, archive.stem)
        if folder:
            _commit(tree)
        try:
            if archive:
                shutil.copyfile(packed, archive)
            if folder:
                shutil.copytree(tree, folder, dirs_exist_ok=True)
        except OSError:
            _remove(folder, archive)
            raise
    return leaks


def _remove(folder: Path | None, archive: Path | None) -> None:
    """Remove what was written of a release that could not be written whole."""
    with contextlib.suppress(OSError):
        if archive:
            archive.unlink(missing_ok=True)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _check_targets(folder: Path | None, archive: Path | None) -> None:
    if folder and (folder.is_symlink() or (folder.exists() and not folder.is_dir())):
        raise ReleaseError(f"{folder} is no folder. Name one that is empty or missing.")
    if folder and folder.is_dir() and any(folder.iterdir()):
        raise ReleaseError(f"{folder} is not empty. Name an empty or a missing folder.")
    if archive and os.path.lexists(archive):
        raise ReleaseError(f"{archive} exists. Name another file, or remove it.")
    if folder and shutil.which("git") is None:
        raise ReleaseError("git was not found, which makes the repository. Install it, or use --zip alone.")


def _list_files(root: Path) -> list[PurePosixPath]:
    """Return the files that may leave: of a git checkout those that git does not ignore."""
    tops = [*WHOLE, *FILES]
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *tops]
    listed = None
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(command, capture_output=True, check=False)
    if listed is not None and listed.returncode == 0:
        names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    else:
        names = [file.relative_to(root).as_posix() for top in tops for file in _walk(root / top)]
    return sorted({PurePosixPath(name) for name in names if os.path.lexists(root / name)})


def _walk(top: Path) -> list[Path]:
    if not top.is_dir():
        return [top] if top.exists() else []
    walked = os.walk(top)
    return [Path(at) / name for at, _, names in walked if not IGNORED & {*Path(at).parts} for name in names]


def _copy(choice: Choice, tree: Path, root: Path) -> None:
    """Copy everything that leaves as it is. Raises ReleaseError for a link."""
    chosen = {path.relative_to(root).as_posix() for path in choice.lessons}
    texts = [path.read_text(encoding="utf-8") for path in [*choice.lessons, *(root / "lessons").glob("*.py")]]
    mentioned = {name for text in texts for name in re.findall(r"\w+\.json", text)}
    problems = {problem_of(name) for name in choice.exercises}
    problems |= {name for name in exercises.problems() for text in texts if re.search(rf"\b{name}\b", text)}
    files = [file for file in _list_files(root) if file.suffix != ".ipynb" and not _is_of_another_lesson(file, choice)]
    names = [str(file) for file in files if str(file) not in NOT_NEEDED]
    names += [f"benchmarks/data/{name}" for name in sorted(mentioned) if (root / "benchmarks/data" / name).is_file()]
    names += [f"kernels_ref/{name}/model.py" for name in sorted(problems)]
    for name in sorted({problem_of(one) for one in choice.exercises}):
        hints = (f"kernels_ref/{name}/{file}" for file in ("hints.toml", "hints_backward.toml"))
        names += [hint for hint in hints if (root / hint).is_file()]
    for name in [*names, *chosen]:
        source, target = root / name, tree / name
        if source.is_symlink() or not source.is_file():
            raise ReleaseError(f"{name} is a link or no file, which a release cannot hold. Remove it.")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _is_of_another_lesson(file: PurePosixPath, choice: Choice) -> bool:
    """Return whether a file has the blanks of a lesson that does not leave."""
    match = re.fullmatch(r"lessons/blanks/lesson_(\d+)\.py", str(file))
    return match is not None and not any(path.name.startswith(f"{match[1]}_") for path in choice.lessons)


def _write_exercises(choice: Choice, answers: Answers, tree: Path, root: Path) -> None:
    """Write the students' files, their fingerprints, and the notebooks. Raises ReleaseError."""
    again: dict[str, list[str]] = {}
    prints = []
    (tree / "kernels_student").mkdir()
    (tree / "kernels_ref").mkdir(exist_ok=True)
    try:
        for name in choice.exercises:
            text, again[name] = cut_exercise(name, answers)
            (tree / "kernels_student" / f"{name}.py").write_text(text, encoding="utf-8")
            if stamp := STAMP.search(text):
                prints.append(f'{name} = "{stamp["print"]}"')
        for path in choice.lessons:
            text = cut_notebook(path.read_text(encoding="utf-8"), again)
            (tree / path.relative_to(root)).write_text(text, encoding="utf-8")
    except (CutError, exercises.ExerciseError) as error:
        raise ReleaseError(str(error)) from None
    (tree / "kernels_ref" / exercises.PRINTS).write_text("\n".join([HEAD, *prints, ""]), encoding="utf-8")


def _write_pages(choice: Choice, tree: Path, root: Path) -> None:
    """Write README, Makefile, tests and workflow, and let JupyterLab open the first lesson of the release."""
    rows = [
        f"| [{_read_title(path)}](lessons/{path.name}) | {_list(names)} |" for path, names in choice.lessons.items()
    ]
    alone = [name for name in choice.exercises if not any(name in names for names in choice.lessons.values())]
    rows += [f"| – | {_list(alone)} |"] if alone else []
    first = choice.exercises[0] if choice.exercises else "NAME"
    values = {"title": "GPU kernels", "first": first, "table": "\n".join(rows)}
    pages = {
        "README.md": "release_README.md.txt",
        "tests/test_exercises.py": "release_test_exercises.py.txt",
        ".github/workflows/course.yml": "release_workflow.yml.txt",
    }
    for name, template in pages.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        text = string.Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)
        (tree / name).write_text(text, encoding="utf-8")
    if (root / "Makefile").is_file():
        (tree / "Makefile").write_text(_cut_makefile((root / "Makefile").read_text(encoding="utf-8")), encoding="utf-8")
    config = tree / "lessons" / ".jupyter" / "config.py"
    if config.is_file() and choice.lessons:
        opened = re.sub(
            r"/lab/tree/lessons/\w+\.ipynb",
            f"/lab/tree/lessons/{next(iter(choice.lessons)).name}",
            config.read_text(encoding="utf-8"),
        )
        config.write_text(opened, encoding="utf-8")


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}.py`" for name in names) or "–"


def _read_title(path: Path) -> str:
    """Return a lesson's first heading."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("# "):
                return line.removeprefix("# ").replace("|", "\\|")
    return path.stem


def _cut_makefile(text: str) -> str:
    """Return the project's Makefile without what only contributors need, and with `make test` for students."""
    targets = "|".join(map(re.escape, MAKE_TARGETS))
    text = re.sub(rf"^(?:{targets}):.*\n(?:(?:\t.*)?\n)*", "", text, flags=re.MULTILINE)
    text = re.sub(rf"^(?:#.*\n)?(?:{'|'.join(MAKE_NAMES)}) := .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"(?<= )(?:{targets})(?: |$)", "", text, flags=re.MULTILINE) if ".PHONY" in text else text
    test = string.Template((TEMPLATES / "release_Makefile.txt").read_text(encoding="utf-8")).substitute()
    return f"# `make lab` opens the lessons, `make test` runs them. Each sets itself up.\n{_drop_head(text)}\n{test}"


def _drop_head(text: str) -> str:
    """Return a Makefile without the comment of its first line."""
    return text.partition("\n")[2] if text.startswith("#") else text


def _write_zip(tree: Path, archive: Path, top: str) -> None:
    """Write a folder into a zip, below a folder called `top`."""
    with zipfile.ZipFile(archive, "x", zipfile.ZIP_DEFLATED) as opened:
        for file in sorted(tree.rglob("*")):
            if file.is_file():
                opened.write(file, f"{top}/{file.relative_to(tree).as_posix()}")


def _commit(tree: Path) -> None:
    """Make a folder a git repository with one commit. Raises ReleaseError."""
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    quiet = {name: value for name, value in quiet.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    for command in (
        ("init", "-q", "-b", "main", "--template="),
        ("add", "-A"),
        (*AUTHOR, "commit", "-q", "-m", "Hand out the course"),
    ):
        done = subprocess.run(["git", *command], cwd=tree, env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ReleaseError(f"git {command[0]} failed: {done.stderr.strip()[:200]}")
