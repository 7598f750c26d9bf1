"""Take the answers out of what students get: out of notebooks, and out of exercises that hold those of others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grader.authoring.answers import Answers
from grader.problems import exercises
from grader.problems.skeletons import DEFECT, OPEN, problem_of, skeleton
from grader.source.cpp import Function, Text

GONE = "*The solution is not part of this copy.*"
NOT_RUN = "*This copy does not have the wrong kernel that this cell grades. It printed:*"
AGAIN = (
    "In this copy, `kernels_student/{}.py` has empty places for what you wrote for {} too: copy your own code there."
)
FOLDED = re.compile(r"<details>\s*<summary>\s*(?:solution|show)\b.*?</details>", re.DOTALL | re.IGNORECASE)
SOLUTION_TAG = "solution"
UNCOMPARED_TAG = "nbval-ignore-output"  # what nbval calls a cell whose output may change
SPECIMENS = "tests/specimens/"
CHECKED = re.compile(r"""grader\.check\(\s*["'](\w+)["']""")


class CutError(ValueError):
    """What cannot be cut, and what to do, in a sentence."""


def cut_exercise(name: str, answers: Answers) -> tuple[str, list[str]]:
    """Return the student's file of an exercise, without bodies of functions that answer others, and these exercises.

    Raises ExerciseError, OSError and CutError.
    """
    solution = exercises.read_solution(name)
    text, lines = Text(solution), solution.split("\n")
    asked = _find_asked(solution)
    cut: dict[str, str] = {}  # by function: the exercise that it answers
    if (forward := problem_of(name)) != name and forward in answers.exercises:
        twins = _find_asked(exercises.read_solution(forward)) & {*text.functions}
        cut.update(dict.fromkeys(twins - asked, forward))
    while True:
        left = "\n".join(_blank(lines, text, cut))
        new = {
            function.name: find.exercise
            for find in sorted(answers.find(left, but=name), key=lambda each: each.tokens)
            if (function := text.around(*find.lines)) and function.name not in asked
        }
        if not new:
            break
        cut.update(new)
    for each in sorted(cut, key=lambda one: -text.functions[one].start):
        _mark(lines, text, text.functions[each], name, cut[each])
    return skeleton("\n".join(lines), name), sorted(set(cut.values()))


def _blank(lines: list[str], text: Text, functions: Iterable[str]) -> list[str]:
    """Return the lines without those of these functions' bodies."""
    bodies = [text.functions[name] for name in functions]
    gone = {n for one in bodies for n in range(text.line(one.start) + 1, text.line(one.end))}
    return ["" if n in gone else line for n, line in enumerate(lines, 1)]


def _find_asked(solution: str) -> set[str]:
    """Return the functions of a solution in which students write something."""
    text = Text(solution)
    marks = [n for n, line in enumerate(solution.split("\n"), 1) if OPEN.match(line) or DEFECT.match(line)]
    return {found.name for mark in marks if (found := text.around(mark))}


def _mark(lines: list[str], text: Text, function: Function, name: str, other: str) -> None:
    """Put the marks of an exercise around a function's body in the lines of a solution."""
    first, last = text.line(function.start), text.line(function.end)
    if last - first < 2 or lines[last - 1].strip() != "}":
        raise CutError(
            f"{function.name} in the solution of {name} answers {other} and cannot be left out: put its braces at the "
            "end of a line and on a line of its own."
        )
    count = sum(bool(line.split("//")[0].strip()) for line in lines[first : last - 1])
    lines.insert(last - 1, "    // <<<")
    lines.insert(first, f"    // >>> exercise: what you wrote for the exercise {other} (about {count} lines)")


def cut_notebook(text: str, again: Mapping[str, Sequence[str]]) -> str:
    """Return a notebook without its solutions and without cells that grade wrong kernels, which are nearly right ones.

    again: for each exercise the others whose answers were cut out of its file; the notebook says so. nbval does not
    compare the output of cells that grade an exercise, because it changes with the exercise. Raises CutError for what
    is no notebook.
    """
    try:
        notebook = json.loads(text)
        notebook["cells"] = [made for cell in notebook["cells"] for made in _cut_cell(cell, again)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CutError(f"it is no notebook ({str(error)[:80] or type(error).__name__})") from None
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def find_set(text: str) -> list[str]:
    """Return the exercises that a notebook's cells grade. Raises CutError for what is no notebook."""
    try:
        sources = ["".join(one["source"]) for one in json.loads(text)["cells"] if one["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CutError(f"it is no notebook ({str(error)[:80] or type(error).__name__})") from None
    return [name for source in sources for name in CHECKED.findall(source)]


def _cut_cell(cell: dict[str, Any], again: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return what takes a cell's place."""
    source = "".join(cell["source"])
    if SOLUTION_TAG in cell["metadata"].get("tags", []):
        return [_make_markdown(cell, GONE)]
    if cell["cell_type"] == "markdown":
        return [{**cell, "source": _split(FOLDED.sub(GONE, source))}]
    if cell["cell_type"] != "code":
        return [cell]
    if SPECIMENS in source:
        return [_make_markdown(cell, f"{NOT_RUN}\n\n```text\n{_read_output(cell)}\n```")]
    names = CHECKED.findall(source)
    if not names:
        return [cell]
    tags = [*cell["metadata"].get("tags", []), UNCOMPARED_TAG]
    made = {**cell, "metadata": {**cell["metadata"], "tags": list(dict.fromkeys(tags))}}
    notes = [AGAIN.format(name, _list_names(again[name])) for name in names if again.get(name)]
    note = {**cell, "id": f"{cell['id']}-again"} if "id" in cell else cell
    return [*([_make_markdown(note, "\n\n".join(notes))] if notes else []), made]


def _list_names(names: Sequence[str]) -> str:
    *most, last = [f"`{name}`" for name in names]
    return f"{', '.join(most)} and {last}" if most else last


def _make_markdown(cell: dict[str, Any], text: str) -> dict[str, Any]:
    kept = {"id": cell["id"]} if "id" in cell else {}
    return {"cell_type": "markdown", **kept, "metadata": {}, "source": _split(text)}


def _read_output(cell: dict[str, Any]) -> str:
    """Return what a cell printed, and the text of what it showed."""
    outputs = cell.get("outputs", [])
    parts = [part for one in outputs for part in (one.get("text", ""), one.get("data", {}).get("text/plain", ""))]
    return "\n".join("".join(part).rstrip() for part in parts if part).replace("```", "'''")


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)
