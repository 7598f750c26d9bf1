"""Make the files that students edit from the reference solutions, and tell an edited file from an untouched one."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import textwrap
import tomllib
from pathlib import Path

from grader import syntax

ROOT = Path(__file__).resolve().parent.parent
KERNELS_REF = ROOT / "kernels_ref"
KERNELS_STUDENT = ROOT / "kernels_student"

PRINTS = "skeletons.toml"  # in kernels_ref: each exercise's fingerprint as handed out, for a copy of the course without the solutions

BACKWARD = "_backward"  # the exercise NAME_backward has problem NAME and is made from kernels_ref/NAME/backward.py

OPEN = re.compile(r"^(?P<indent>\s*)(?P<comment>//|\#)\s*>>>\s*exercise:\s*(?P<hint>.*?)\s*$")
CLOSE = re.compile(r"^\s*(//|\#)\s*<<<\s*$")
DEFECT = re.compile(r"^\s*//\s*>>>\s*defect:\s*(?P<what>.*?)\s*$")
INSTEAD = re.compile(r"^\s*//\s*---\s*$")
NEARLY = re.compile(r">>>\s*(?P<what>exercise|defect)\b", re.IGNORECASE)  # a mark, or what was meant as one
MARK = "YOUR CODE HERE"
STAMP = re.compile(r"^# Made from .*; skeleton (?P<print>[0-9a-f]{12})\.$", re.MULTILINE)


class ExerciseError(ValueError):
    """A solution whose exercise markers do not make a skeleton, or hints that cannot be read; str() says which file and line, and why."""


def problem_of(exercise: str) -> str:
    """The problem that an exercise belongs to: groupnorm for groupnorm and for groupnorm_backward."""
    return exercise.removesuffix(BACKWARD)


def source_of(exercise: str) -> Path:
    """The file that an exercise is made from; it need not exist."""
    file = "backward.py" if exercise.endswith(BACKWARD) else "solution.py"
    return KERNELS_REF / problem_of(exercise) / file


def problems() -> list[str]:
    """The problems of the course, sorted."""
    return sorted(file.parent.name for file in KERNELS_REF.glob("*/model.py"))


def exercises() -> list[str]:
    """The problems of the course, each followed by its NAME_backward if there is one; sorted. A copy without solutions has the same."""
    found = set(problems())
    backward = {file.parent.name + BACKWARD for file in KERNELS_REF.glob("*/backward.py")}
    return sorted(found | backward | {name for name in _prints() if problem_of(name) in found})


def model_of(submission: Path) -> Path | None:
    """The model.py of kernels_ref that a file answers: it lies there itself, or its name says it, or its folder's; None where nothing tells.

    A handed-in name holds its problem's: `groupnorm_ada.py`, `groupnorm-2.py`, `ada.groupnorm.py`. A model.py that lies beside a file
    elsewhere may have been handed in with it, and a problem's code runs in the grader itself: only --problem takes it.
    """
    submission = Path(submission).resolve()
    folders = (submission.parent, submission.parent.parent)
    for folder in folders:
        if folder.parent == KERNELS_REF.resolve() and (folder / "model.py").is_file() and submission.name != "model.py":
            return folder / "model.py"
    known = problems()
    if submission.stem in known:
        return KERNELS_REF / submission.stem / "model.py"
    for name in sorted(known, key=len, reverse=True):  # the longest: conv_groupnorm_maxpool_ada is no groupnorm
        if re.search(rf"(?:^|[^a-zA-Z0-9]){re.escape(name)}(?:$|[^a-zA-Z0-9])", submission.stem):
            return KERNELS_REF / name / "model.py"
    return next((KERNELS_REF / folder.name / "model.py" for folder in folders if folder.name in known), None)


def empty_places(text: str) -> list[int]:
    """Lines, from 1, of the marked places of a student's file behind which the kernel ends, or the next place stands, without any code."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    marks = [MARK + ":" in line for _, line in lines]
    return [lines[i][0] for i, marked in enumerate(marks[:-1]) if marked and (marks[i + 1] or lines[i + 1][1].startswith("}"))]


def given_lines(text: str, exercise: str) -> set[int]:
    """Lines, from 1, that a file has from the exercise's stub: none where it was not made from it, that is where it lacks most of the stub.

    None either where the stub cannot be made again: in a copy without solutions, and from a solution that makes none.
    """
    stub = [line for line in (_made(exercise) or "").splitlines() if line.strip()]
    if not stub:
        return set()
    lines = text.splitlines()
    if 2 * len(set(stub) & set(lines)) < len(set(stub)):
        return set()
    return {number for number, line in enumerate(lines, 1) if line in stub}


def outside_places(text: str, exercise: str) -> set[int]:
    """The given lines of a file, which stand outside of its marked places; none where the exercise has defects, which stand in given lines."""
    try:
        defective = any(DEFECT.match(line) for line in _solution(exercise).splitlines())
    except (OSError, ExerciseError):
        return set()
    return set() if defective else given_lines(text, exercise)


def still_empty(text: str) -> str:
    """Which marked places of a student's file are empty, in a sentence; empty where none is."""
    empty = empty_places(text)
    where = f"place in line {empty[0]}" if len(empty) == 1 else f"places in lines {', '.join(map(str, empty))}"
    return f"Still empty: the marked {where}. Only all together can be right." if empty else ""


def exercise_of(submission: Path, problem: str) -> str:
    """The exercise that a file answers, whose problem is known: problem_backward where its name or its folder's says so."""
    backward = re.compile(rf"(?:^|[^a-zA-Z0-9]){re.escape(problem + BACKWARD)}(?:$|[^a-zA-Z0-9])")
    reference = submission.name == "backward.py" and submission.resolve().parent.name == problem
    named = reference or backward.search(submission.stem) or backward.search(submission.resolve().parent.name)
    return problem + BACKWARD if named else problem


@functools.lru_cache(64)
def skeleton(solution_source: str, name: str) -> str:
    """The student's file for exercise `name`: each marked section replaced by one comment with its hint.

    A section runs from `// >>> exercise: HINT` to `// <<<` inside a CUDA string, from `# >>> exercise: HINT` to
    `# <<<` in Python. A section that begins with `// >>> defect: WHAT IS WRONG` is to be found and mended: what stands
    between `// ---` and `// <<<`, as comments, takes the place of the right lines before it, and nothing marks it.
    The head docstring becomes the assignment, whatever it says of marks. A source without sections is returned as it is,
    so a skeleton's skeleton is itself. Raises ExerciseError where a section is not closed, opened twice, marked where no mark
    counts, or leaves a file that Python cannot parse.
    """
    lines = _placed(solution_source, name)
    broken, defects = _with_defects(lines, name)
    body, hints = _cut(broken, name)
    if not hints and not defects:
        return solution_source
    body = _assignment(body, name, hints, defects)
    try:
        stamp = fingerprint(body)
    except SyntaxError as error:
        raise ExerciseError(f"{_short_source(name)}: without its exercises the file does not parse ({error.msg}).") from None
    return f"{body.rstrip()}\n\n# Made from {_short_source(name)} by `grader student`; skeleton {stamp}.\n"


def is_untouched(source: str, problem_name: str) -> bool:
    """True if a submission is the skeleton, whatever was done to its comments, docstrings and spaces.

    An older skeleton, known by the stamp in its last line, is untouched too. A file that does not parse is not.
    Where the solution was not handed out, the skeleton's fingerprint was; it serves where the solution makes no skeleton, too.
    """
    try:
        mine = fingerprint(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: too deep for Python's parser
        return False
    stamp = STAMP.search(source)
    if stamp and stamp["print"] == mine:
        return True
    made = _made(problem_name)
    if made is None:
        return _prints().get(problem_name) == mine
    return bool(STAMP.search(made)) and fingerprint(made) == mine


def write_all() -> tuple[list[Path], list[Path]]:
    """Write kernels_student/NAME.py for every solution, and the fingerprints of all. Returns (written, kept).

    A file that someone has worked on is kept: it is never overwritten; delete it to get a fresh one. Raises OSError, which names the file,
    and ExerciseError for a solution or hints that are not as they should be; nothing is written then.
    """
    written, kept = [], []
    if KERNELS_STUDENT.exists() and not KERNELS_STUDENT.is_dir():
        raise NotADirectoryError(20, "it is no folder", str(KERNELS_STUDENT))
    KERNELS_STUDENT.mkdir(exist_ok=True)
    for path, text in _wanted().items():
        old = _student_text(path) if path.exists() else None
        if old == text:
            continue
        if old is not None and not is_untouched(old, path.stem):
            kept.append(path)
            continue
        path.write_text(text, encoding="utf-8")
        written.append(path)
    prints = _prints_text()
    if prints != _read_prints():
        (KERNELS_REF / PRINTS).write_text(prints, encoding="utf-8")
        written.append(KERNELS_REF / PRINTS)
    return written, kept


def check_all() -> list[str]:
    """One sentence for each student file that is missing, not as its solution makes it, or without a solution. Raises ExerciseError."""
    if KERNELS_STUDENT.exists() and not KERNELS_STUDENT.is_dir():
        return ["kernels_student is no folder."]
    wanted = _wanted()
    problems = []
    for path, text in wanted.items():
        if not path.exists():
            problems.append(f"{_short(path)} is missing.")
        elif not path.is_file() or _student_text(path) != text:
            problems.append(f"{_short(path)} is not what {_short_source(path.stem)} makes.")
    for path in sorted(KERNELS_STUDENT.glob("*.py")):
        if path not in wanted:
            problems.append(f"{_short(path)} has no {_short_source(path.stem)}.")
    if _prints_text() != _read_prints():
        problems.append(f"kernels_ref/{PRINTS} is not what the solutions make.")
    return problems


def fingerprint(source: str) -> str:
    """12 hex digits that change with the code, and not with comments, docstrings or spaces, in Python or in CUDA."""
    tree = syntax.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = _c_tokens(node.value)
    return hashlib.sha256(_told(tree).encode()).hexdigest()[:12]


def _told(value) -> str:
    """Like ast.dump, but the same on every version of Python: what a node does not have is left out, as new versions add more of it.
    Without recursion: what the parser takes may be deeper than Python's own calls may go."""
    nothing = object()
    said, waiting = [], [("", value)]  # waiting: a text and the value told after it, the next one last
    while waiting:
        text, one = waiting.pop()
        said.append(text)
        if isinstance(one, ast.AST):
            fields = [(name, field) for name, field in ast.iter_fields(one) if field is not None and field != []]
            inner = [(f"{', ' if at else ''}{name}=", field) for at, (name, field) in enumerate(fields)]
            said.append(f"{type(one).__name__}(")
            waiting += [(")", nothing), *reversed(inner)]
        elif isinstance(one, list):
            said.append("[")
            waiting += [("]", nothing), *reversed([(", " if at else "", item) for at, item in enumerate(one)])]
        elif one is not nothing:
            said.append(repr(one))
    return "".join(said)


def _student_text(path: Path) -> str:
    """A student file's text. What is not UTF-8 in it becomes a sign that no exercise has, so that the file is not taken for one."""
    return path.read_text(encoding="utf-8", errors="replace")


def _wanted() -> dict[Path, str]:
    """Each student file's path and text. Raises ExerciseError, for hints that cannot be used too."""
    from grader import hints

    hints.check(KERNELS_REF)
    wanted = {}
    names = [p.parent.name for p in KERNELS_REF.glob("*/solution.py")]
    names += [p.parent.name + BACKWARD for p in KERNELS_REF.glob("*/backward.py")]
    for name in sorted(names):
        text = skeleton(_solution(name), name)
        if not STAMP.search(text):
            said = "nothing in it is marked, so that no exercise can be made. What students write stands between `// >>> exercise: HINT` and `// <<<`."
            raise ExerciseError(f"{_short_source(name)}: {said}")
        wanted[KERNELS_STUDENT / f"{name}.py"] = text
    return wanted


def _solution(exercise: str) -> str:
    """The text of the file that an exercise is made from, without a byte order mark. Raises OSError and ExerciseError."""
    try:
        return source_of(exercise).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ExerciseError(f"{_short_source(exercise)}: line {line} is not UTF-8 text: save the file as UTF-8.") from None


def _made(exercise: str) -> str | None:
    """The exercise's skeleton; None where there is no solution or none that makes one: whoever grades is not told of an author's mistakes."""
    try:
        return skeleton(_solution(exercise), exercise)
    except (OSError, ExerciseError):
        return None


def _prints() -> dict[str, str]:
    """Each exercise's fingerprint as it was handed out; empty where the file is missing or damaged."""
    try:
        return tomllib.loads(_read_prints())
    except tomllib.TOMLDecodeError:
        return {}


def _read_prints() -> str:
    file = KERNELS_REF / PRINTS
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _prints_text() -> str:
    """What skeletons.toml should hold. An exercise that is handed out without its solution keeps its line."""
    kept = {name: digits for name, digits in _prints().items() if not source_of(name).is_file() and (KERNELS_STUDENT / f"{name}.py").is_file()}
    made = {path.stem: STAMP.search(text)["print"] for path, text in _wanted().items()}
    lines = [f'{name} = "{digits}"' for name, digits in sorted((kept | made).items())]
    return "\n".join(["# The exercises as handed out, by `grader student`: students' files are told from these where the solutions are missing.", *lines, ""])


def _short(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _short_source(exercise: str) -> str:
    return f"kernels_ref/{_short(source_of(exercise))}"


C_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|\s+)|(?P<token>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\w+|.)""", re.DOTALL
)


def _c_tokens(text: str) -> str:
    """C++ source without comments and with one space between tokens."""
    return " ".join(match["token"] for match in C_TOKEN.finditer(text) if match["token"] is not None)


def _placed(source: str, name: str) -> list[tuple[int, str]]:
    """The lines of a solution with their numbers, from 1; its head docstring, in which no mark counts, is one of them.
    Raises ExerciseError for a mark that would make no exercise."""
    try:
        tree = syntax.parse(source)
    except SyntaxError as error:
        place = f"line {error.lineno}" if error.lineno else "it"
        raise ExerciseError(f"{_short_source(name)}: Python cannot parse {place} ({error.msg}).") from None
    except (ValueError, RecursionError, MemoryError) as error:  # null characters; too deep for Python's parser
        raise ExerciseError(f"{_short_source(name)}: Python cannot parse it ({str(error) or 'it is nested too deeply'}).") from None
    lines = list(enumerate(source.split("\n"), 1))
    if ast.get_docstring(tree) is not None:
        first, last = tree.body[0].lineno, tree.body[0].end_lineno
        lines[first - 1 : last] = [(first, "\n".join(line for _, line in lines[first - 1 : last]))]
    strings = [node for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    inside = {n for node in strings for n in range(node.lineno + 1, node.end_lineno + 1)}  # lines that begin in a string
    for number, line in lines:
        nearly = NEARLY.search(line)
        if not nearly or "\n" in line:
            continue
        opens, sign = OPEN.match(line), "//" if number in inside else "#"
        if nearly["what"].lower() == "defect" and not (DEFECT.match(line) and sign == "//"):
            raise ExerciseError(f"{_short_source(name)}: line {number} marks no defect. `// >>> defect: WHAT IS WRONG` does, as a line of the CUDA source.")
        if nearly["what"].lower() == "exercise" and not (opens and opens["comment"] == sign):
            here = "the CUDA source" if sign == "//" else "Python"
            raise ExerciseError(f"{_short_source(name)}: line {number} marks no exercise. In {here} `{sign} >>> exercise: HINT` does, as a line of its own.")
    return lines


def _with_defects(lines: list[tuple[int, str]], name: str) -> tuple[list[tuple[int, str]], int]:
    """The lines with each defect in the place of the lines that it spoils, and how many there are."""
    kept: list[tuple[int, str]] = []
    opened = defects = 0
    spoiling = False
    where = _short_source(name)
    for number, line in lines:
        if found := DEFECT.match(line):
            if opened or not found["what"]:
                why = f"inside the one opened at line {opened}" if opened else "and does not say what is wrong"
                raise ExerciseError(f"{where}: line {number} opens a defect {why}.")
            opened, spoiling, defects = number, False, defects + 1
        elif opened and OPEN.match(line):
            raise ExerciseError(f"{where}: line {number} opens an exercise inside the defect opened at line {opened}.")
        elif opened and INSTEAD.match(line):
            spoiling = True
        elif opened and CLOSE.match(line):
            if not spoiling:
                raise ExerciseError(f"{where}: the defect opened at line {opened} has no `// ---` with the spoilt lines after it.")
            opened = 0
        elif not opened:
            kept.append((number, line))
        elif spoiling:
            kept.append((number, re.sub(r"^(\s*)// ?", r"\1", line)))
    if opened:
        raise ExerciseError(f"{where}: the defect opened at line {opened} is never closed; a line `// <<<` does that.")
    return kept, defects


def _cut(lines: list[tuple[int, str]], name: str) -> tuple[str, list[str]]:
    """The text of the lines with each section replaced by its comment, and the hints in order."""
    kept: list[str] = []
    hints: list[str] = []
    opened, sign = 0, ""
    where = _short_source(name)
    for number, line in lines:
        start = OPEN.match(line)
        if start:
            if opened:
                raise ExerciseError(f"{where}: line {number} opens an exercise inside the one opened at line {opened}.")
            if not start["hint"]:
                raise ExerciseError(f"{where}: the exercise at line {number} has no hint.")
            opened, sign = number, start["comment"]
            hints.append(start["hint"])
            kept.append(f"{start['indent']}{sign} {MARK}: {start['hint']}")
            if sign == "#":
                # A suite must not be left empty; where statements remain, this one says which part is missing.
                kept.append(f"{start['indent']}raise NotImplementedError({start['hint']!r})")
        elif CLOSE.match(line):
            if not opened:
                raise ExerciseError(f"{where}: line {number} closes an exercise that was never opened.")
            opened = 0
        elif not opened:
            kept.append(line)
    if opened:
        raise ExerciseError(f"{where}: the exercise opened at line {opened} is never closed; a line `{sign} <<<` does that.")
    return "\n".join(kept) + "\n", hints


def _assignment(body: str, name: str, hints: list[str], defects: int = 0) -> str:
    """The body with its head docstring turned into what there is to do and how to grade it."""
    try:
        tree = syntax.parse(body)
    except SyntaxError as error:
        raise ExerciseError(f"{_short_source(name)}: without its exercises the file does not parse ({error.msg}).") from None
    goal = ast.get_docstring(tree) or name
    places = "one place" if len(hints) == 1 else f"{len(hints)} places"
    computes, has = ("has the gradients that", "has") if name.endswith(BACKWARD) else ("computes what", "computes")
    todo = [
        textwrap.fill(hint, 112, initial_indent=f"  {number}. ", subsequent_indent="     ")
        for number, hint in enumerate(hints, 1)
    ]
    task = f"fill in the {places} marked {MARK}"
    if defects:
        many, all_ = ("1 defect is", "it") if defects == 1 else (f"{defects} defects are", "each")
        task = f"{many} in this file, unmarked. Find and mend {all_}" + (f"; {task}" if hints else "")
    aim = f"Your task: {task}, so that ModelNew {computes} Model in\nkernels_ref/{problem_of(name)}/model.py {has}, for any shape."
    text = "\n".join(
        [
            f"{goal}",
            "",
            textwrap.fill(aim, 112, break_long_words=False) if defects else aim,
            "",
            *todo,
            *([""] if todo else []),
            f"Grade it, with or without a GPU:  grader grade kernels_student/{name}.py",
        ]
    )
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = body.split("\n")
    if ast.get_docstring(tree) is not None:
        lines = lines[: tree.body[0].lineno - 1] + lines[tree.body[0].end_lineno :]
    return f'"""{text}\n"""\n' + "\n".join(lines).rstrip() + "\n"
