"""Make the file that students edit from a reference solution: cut out what is marked as exercise, put in defects."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import textwrap

from grader.source import syntax

BACKWARD = "_backward"  # the exercise NAME_backward has problem NAME and is made from kernels_ref/NAME/backward.py
OPEN = re.compile(r"^(?P<indent>\s*)(?P<comment>//|\#)\s*>>>\s*exercise:\s*(?P<hint>.*?)\s*$")
CLOSE = re.compile(r"^\s*(//|\#)\s*<<<\s*$")
DEFECT = re.compile(r"^\s*//\s*>>>\s*defect:\s*(?P<what>.*?)\s*$")
INSTEAD = re.compile(r"^\s*//\s*---\s*$")
NEARLY = re.compile(r">>>\s*(?P<what>exercise|defect)\b", re.IGNORECASE)  # a mark, or what was meant as one
MARK = "YOUR CODE HERE"
STAMP = re.compile(r"^# Made from .*; skeleton (?P<print>[0-9a-f]{12})\.$", re.MULTILINE)
C_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|\s+)|(?P<token>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\w+|.)""", re.DOTALL
)


class ExerciseError(ValueError):
    """Raised for a solution whose marks make no skeleton, or unusable hints; the text names file, line and reason."""


def problem_of(exercise: str) -> str:
    """Return the problem that an exercise belongs to: groupnorm for groupnorm and for groupnorm_backward."""
    return exercise.removesuffix(BACKWARD)


def source_file(exercise: str) -> str:
    """Return the name of the file in kernels_ref/PROBLEM that an exercise is made from."""
    return "backward.py" if exercise.endswith(BACKWARD) else "solution.py"


def name_source(exercise: str) -> str:
    """Return what messages call the file that an exercise is made from."""
    return f"kernels_ref/{problem_of(exercise)}/{source_file(exercise)}"


@functools.lru_cache(64)
def skeleton(solution_source: str, name: str) -> str:
    """Return the student's file for exercise `name`: each marked section is replaced by one comment with its hint.

    A section runs from `// >>> exercise: HINT` to `// <<<` inside a CUDA string, from `# >>> exercise: HINT` to `# <<<`
    in Python. A section that begins with `// >>> defect: WHAT IS WRONG` is to be found and fixed: the text between
    `// ---` and `// <<<`, as comments, takes the place of the right lines before it, and nothing marks it. The head
    docstring becomes the assignment, whatever it says of marks. A source without sections is returned as it is, so a
    skeleton's skeleton is itself. Raises ExerciseError where a section is not closed, opened twice, marked where no
    mark counts, or leaves a file that Python cannot parse.
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
        raise ExerciseError(
            f"{name_source(name)}: without its exercises the file does not parse ({error.msg})."
        ) from None
    return f"{body.rstrip()}\n\n# Made from {name_source(name)} by `grader student`; skeleton {stamp}.\n"


def fingerprint(source: str) -> str:
    """Return 12 hex digits that change with the code, Python or CUDA, and not with comments, docstrings or spaces."""
    tree = syntax.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = _c_tokens(node.value)
    return hashlib.sha256(_dump(tree).encode()).hexdigest()[:12]


def _dump(value) -> str:
    """Return a text like ast.dump's that is the same on every version of Python.

    What a node does not have is left out, as new versions add more of it. Without recursion: what the parser takes may
    be deeper than Python's own calls may go.
    """
    nothing = object()
    parts, waiting = [], [("", value)]  # waiting: a text and the value that follows it, the next one last
    while waiting:
        text, one = waiting.pop()
        parts.append(text)
        if isinstance(one, ast.AST):
            fields = [(name, field) for name, field in ast.iter_fields(one) if field is not None and field != []]
            inner = [(f"{', ' if at else ''}{name}=", field) for at, (name, field) in enumerate(fields)]
            parts.append(f"{type(one).__name__}(")
            waiting += [(")", nothing), *reversed(inner)]
        elif isinstance(one, list):
            parts.append("[")
            waiting += [("]", nothing), *reversed([(", " if at else "", item) for at, item in enumerate(one)])]
        elif one is not nothing:
            parts.append(repr(one))
    return "".join(parts)


def _c_tokens(text: str) -> str:
    """Return C++ source without comments and with one space between tokens."""
    return " ".join(match["token"] for match in C_TOKEN.finditer(text) if match["token"] is not None)


def _placed(source: str, name: str) -> list[tuple[int, str]]:
    """Return the lines of a solution with their numbers, from 1; its head docstring, where no mark counts, is one line.

    Raises ExerciseError for a mark that would make no exercise.
    """
    try:
        tree = syntax.parse(source)
    except SyntaxError as error:
        place = f"line {error.lineno}" if error.lineno else "it"
        raise ExerciseError(f"{name_source(name)}: Python cannot parse {place} ({error.msg}).") from None
    except (ValueError, RecursionError, MemoryError) as error:  # null characters; too deep for Python's parser
        raise ExerciseError(
            f"{name_source(name)}: Python cannot parse it ({str(error) or 'it is nested too deeply'})."
        ) from None
    lines = list(enumerate(source.split("\n"), 1))
    if ast.get_docstring(tree) is not None:
        first, last = tree.body[0].lineno, tree.body[0].end_lineno
        lines[first - 1 : last] = [(first, "\n".join(line for _, line in lines[first - 1 : last]))]
    strings = [node for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    # lines that begin in a string
    inside = {n for node in strings for n in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)}
    for number, line in lines:
        nearly = NEARLY.search(line)
        if not nearly or "\n" in line:
            continue
        opens, sign = OPEN.match(line), "//" if number in inside else "#"
        if nearly["what"].lower() == "defect" and not (DEFECT.match(line) and sign == "//"):
            raise ExerciseError(
                f"{name_source(name)}: line {number} marks no defect. `// >>> defect: WHAT IS WRONG` does, as a line "
                "of the CUDA source."
            )
        if nearly["what"].lower() == "exercise" and not (opens and opens["comment"] == sign):
            here = "the CUDA source" if sign == "//" else "Python"
            raise ExerciseError(
                f"{name_source(name)}: line {number} marks no exercise. In {here} `{sign} >>> exercise: HINT` does, as "
                "a line of its own."
            )
    return lines


def _with_defects(lines: list[tuple[int, str]], name: str) -> tuple[list[tuple[int, str]], int]:
    """Return the lines with each defect in the place of the lines that it spoils, and the number of defects."""
    kept: list[tuple[int, str]] = []
    opened = defects = 0
    spoiling = False
    where = name_source(name)
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
                raise ExerciseError(
                    f"{where}: the defect opened at line {opened} has no `// ---` with the spoilt lines after it."
                )
            opened = 0
        elif not opened:
            kept.append((number, line))
        elif spoiling:
            kept.append((number, re.sub(r"^(\s*)// ?", r"\1", line)))
    if opened:
        raise ExerciseError(f"{where}: the defect opened at line {opened} is never closed; a line `// <<<` does that.")
    return kept, defects


def _cut(lines: list[tuple[int, str]], name: str) -> tuple[str, list[str]]:
    """Return the text of the lines with each section replaced by its comment, and the hints in order."""
    kept: list[str] = []
    hints: list[str] = []
    opened, sign = 0, ""
    where = name_source(name)
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
        raise ExerciseError(
            f"{where}: the exercise opened at line {opened} is never closed; a line `{sign} <<<` does that."
        )
    return "\n".join(kept) + "\n", hints


def _assignment(body: str, name: str, hints: list[str], defects: int = 0) -> str:
    """Return the body with its head docstring turned into what there is to do and how to grade it."""
    try:
        tree = syntax.parse(body)
    except SyntaxError as error:
        raise ExerciseError(
            f"{name_source(name)}: without its exercises the file does not parse ({error.msg})."
        ) from None
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
        task = f"{many} in this file, unmarked. Find and fix {all_}" + (f"; {task}" if hints else "")
    model = f"kernels_ref/{problem_of(name)}/model.py"
    aim = f"Your task: {task}, so that ModelNew {computes} Model in\n{model} {has}, for any shape."
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
