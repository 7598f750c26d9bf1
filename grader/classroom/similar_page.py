"""Make one page of the pairs that `grader class similar` ranks: no script, and no request leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from grader.classroom.similarity import RARE_SHARE, Mark, Pair, Work
from grader.reports.terminal import clean, line
from grader.source.syntax import split_lines

TEMPLATES = Path(__file__).with_name("templates")
SHORTEST_GAP = 4  # lines that were handed out, and are left out
MOST_LINES = 1500  # of a file on the page
MOST_COLUMNS = 400


@dataclass(frozen=True)
class Part:
    """The pairs of one problem. students, works: how many were compared."""

    problem: str
    students: int
    works: int
    pairs: Sequence[Pair]


def make_page(title: str, parts: Sequence[Part], foot: str = "") -> str:
    """Return the page in HTML. title: the course's. foot: when and how it was made."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    shown = [
        {
            "problem": line(part.problem),
            "students": part.students,
            "works": part.works,
            "pairs": [_describe_pair(pair, part.students) for pair in part.pairs],
        }
        for part in parts
    ]
    return environment.get_template("similar.html").render(title=line(title), parts=shown, foot=line(foot))


def _describe_pair(pair: Pair, students: int) -> dict:
    """Return what the template shows of a pair."""
    sides = [
        _describe_side(work, marks, own, students)
        for work, marks, own in zip((pair.first, pair.second), pair.marks, pair.own)
    ]
    return {
        "first": sides[0],
        "second": sides[1],
        "score": pair.score,
        "alike": pair.alike,
        "surroundings": pair.surroundings,
        "passages": pair.passages,
        "shared": pair.shared,
        "view": pair.view,
        "sides": sides,
    }


def _describe_side(work: Work, marks: dict[int, Mark], own: set[int], students: int) -> dict:
    """Return what the template shows of one file: the lines that the student wrote, and those around them."""
    texts = split_lines(work.text)[:MOST_LINES]
    near = {number + step for number in own | marks.keys() for step in (-2, -1, 0, 1, 2)}
    lines: list[dict] = []
    gap: list[int] = []
    for number in range(1, len(texts) + 2):
        if number <= len(texts) and number not in near:
            gap.append(number)
            continue
        if len(gap) >= SHORTEST_GAP:
            lines.append({"left_out": len(gap)})
        else:
            lines += [_describe_line(each, texts, marks, students) for each in gap]
        gap = []
        if number <= len(texts):
            lines.append(_describe_line(number, texts, marks, students))
    return {"name": line(work.name), "label": line(work.label), "lines": lines}


def _describe_line(number: int, texts: list[str], marks: dict[int, Mark], students: int) -> dict:
    mark = marks.get(number)
    rare = mark is not None and mark.students <= max(2.0, RARE_SHARE * students)
    kind = "rare" if rare else "common" if mark else ""
    text = clean(texts[number - 1][:MOST_COLUMNS])
    return {"left_out": 0, "number": number, "kind": kind, "text": text, "other": mark.other if mark else 0}
