"""What a class hands in, with everything that goes wrong: a folder a student, and the class list.

`python -m tests.grader.classroom.handed_in FOLDER [STUDENTS]` writes a course's folder and FOLDER/handed_in, for
`grader class collect FOLDER/handed_in --course FOLDER`.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

from grader.paths import ROOT
from tests.grader.classroom.made_class import DUE, FIRST, LAST, PROBLEMS, WEEK, write_rules

SPECIMENS = ROOT / "tests" / "specimens"
# How a student hands in one problem, and how often in a hundred.
SHARES = {
    "right": 46,
    "wrong": 24,
    "slow": 3,
    "hanging": 2,
    "crashing": 3,
    "dishonest": 3,
    "missing": 4,
    "duplicate": 4,
    "late": 3,
    "wrong name": 2,
    "zip in a zip": 2,
    "not UTF-8": 2,
    "docx": 1,
    "notebook": 1,
}
SLOW = ("every_thread_sums_everything",)
HANGING, CRASHING = ("endless",), ("os_exit", "segmentation_fault", "init_raises", "exception")


def write_handed_in(folder: Path, students: int, seed: int = 1) -> Counter[str]:
    """Write a course's folder, and what its students hand in; return how often each kind was."""
    draw = random.Random(seed)
    people = {f"s{at:04}": f"{draw.choice(FIRST.split())} {draw.choice(LAST.split())}" for at in range(1, students + 1)}
    write_rules(folder, people)
    known = {problem: _sort_specimens(problem) for problem in PROBLEMS}
    seen: dict[str, list[bytes]] = {problem: [] for problem in PROBLEMS}
    counted: Counter[str] = Counter()
    for student in people:
        place = folder / "handed_in" / student
        place.mkdir(parents=True)
        for at, problem in enumerate(PROBLEMS):
            kind = draw.choices(list(SHARES), list(SHARES.values()))[0]
            kind = kind if kind != "duplicate" or seen[problem] else "right"
            counted[kind] += 1
            _hand_in(draw, place, student, problem, kind, known[problem], seen[problem])
            for file in place.glob(f"*{problem}*"):
                hours = draw.uniform(1, 60) if kind == "late" else -draw.uniform(1, 72)
                when = (DUE + at * WEEK).timestamp() + 3600 * hours
                os.utime(file, (when, when))
    return counted


def _hand_in(
    draw: random.Random,
    place: Path,
    student: str,
    problem: str,
    kind: str,
    known: dict[str, list[str]],
    seen: list[bytes],
) -> None:
    """Write one student's work on a problem."""
    right = (ROOT / "kernels_ref" / problem / "solution.py").read_text(encoding="utf-8")
    text = draw.choice(known.get(kind) or [right])
    # the CUDA source is another for each student, so that no build is shared
    data = text.replace("__global__", f"/* {student} */ __global__", 1).encode()
    if kind == "missing":
        return
    if kind == "duplicate":
        data = draw.choice(seen)
    elif kind == "not UTF-8":
        data += f"# {student}: gr\xfc\xdfe\n".encode("latin-1")
    if kind == "wrong name":
        (place / f"{problem[:2]}{problem[3:]}.py").write_bytes(data)
    elif kind == "zip in a zip":
        (place / f"{problem}.zip").write_bytes(_zip("inner.zip", _zip(f"{problem}.py", data)))
    elif kind == "docx":
        (place / f"{problem}.docx").write_bytes(_zip("word/document.xml", b"<w:document/>"))
    elif kind == "notebook":
        cell = {"cell_type": "code", "source": [data.decode()], "metadata": {}, "outputs": []}
        notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (place / f"{problem}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    else:
        (place / f"{problem}.py").write_bytes(data)
        seen.append(data)


def _zip(name: str, data: bytes) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return into.getvalue()


def _sort_specimens(problem: str) -> dict[str, list[str]]:
    """Return the texts of the specimens of a problem by the kind of work that they are."""
    found: dict[str, list[str]] = {}
    for file in sorted(SPECIMENS.glob(f"{problem}_*.py")):
        what = file.stem.removeprefix(f"{problem}_")
        if what.startswith("backward"):
            continue
        kinds = {"slow": SLOW, "hanging": HANGING, "crashing": CRASHING}
        kind = next((kind for kind, words in kinds.items() if any(word in what for word in words)), "wrong")
        found.setdefault(kind, []).append(file.read_text(encoding="utf-8"))
    rows = tomllib.loads((SPECIMENS / "dishonest" / "expected.toml").read_text(encoding="utf-8"))
    for name, row in rows.items():
        plain = not row.keys() & {"plants", "kind", "handed_in_as", "beside", "names_problem", "levels"}
        if plain and row.get("problem", "logsumexp") == problem and name.startswith(("facts_", "kernels_")):
            file = SPECIMENS / "dishonest" / f"{name}.py"
            found.setdefault("dishonest", []).append(file.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    print(dict(write_handed_in(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300)))
