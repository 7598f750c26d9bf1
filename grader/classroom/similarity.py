"""Rank pairs of students by how much of their code is alike that few others have: a ranking, not a verdict.

A submission is reduced to what its author wrote: statements that the exercise did not hand out, in a form without
names, layout, comments and the spelling of loops (`grader.source.statements`). What is compared are uses of values: the
statement that sets a variable and one that reads it, whatever stands between them. So neither other names nor another
order of functions and statements hides a copy. Each use weighs log((N + 1) / n) where n of N students have it (inverse
document frequency, K. Spärck Jones, 1972), and those of the exercise or of its reference weigh nothing.

How alike two students are is the weighted Jaccard index of their uses, in several views; the highest counts. Students
who write the obvious all resemble each other, so what a pair has beyond its surroundings is ranked: the similarity less
that of the more crowded one's sixth neighbour (as in self-tuning spectral clustering, L. Zelnik-Manor and P. Perona,
2004, which scales by the seventh), times the logarithm of the information that both share.
"""

from __future__ import annotations

import difflib
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from grader.source.expressions import find_names
from grader.source.statements import Reading, Statement, find_target, inline_values, read_statements

NEIGHBOUR = 6  # more students than this who hand in one kernel hide each other
SOFTNESS = 0.2  # of the scaling: 0 would rank tiny differences in a crowd as high as a copy in the open
GIVEN_RUN = 2  # statements in a row that are those handed out
MOST_COMPARED = 1000  # statements of a file
MOST_COUNTED = 3  # of equal features in a file
SHORTEST_COMMENT = 3  # words
RARE_SHARE = 0.1  # of the students: what more of them have is common
GRAM, WINDOW = 12, 4  # tokens: runs of 15 equal tokens are always found, shorter ones than 12 never
# view -> its weight. Values in their places undo what a copy extracted, and make more independent work alike as well.
VIEWS = {"uses": 1.0, "uses with indices in place": 0.9, "uses with values in place": 0.8, "words": 1.0}

Spots = dict[str, list[tuple[int, int]]]  # feature -> the lines, first and last, of each place that has it


@dataclass(frozen=True)
class Work:
    """What a student handed in once. name: of the student, for readers. label: which attempt it is."""

    student: str
    name: str
    label: str
    text: str


@dataclass
class Prints:
    """What is compared of a submission. views: of VIEWS. grams: fingerprints. own: lines that the student wrote."""

    views: dict[str, Spots]
    grams: Spots
    own: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Handed:
    """What was handed out with an exercise: the file to fill in, and solutions; "" for what there is not."""

    exercise: str = ""
    solutions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """A line that both have. other: the line of the other file. students: who have its rarest feature, of all."""

    other: int
    students: int


@dataclass(frozen=True)
class Pair:
    """Two students' work. score: what the ranking is by. alike: 0 to 1. surroundings: how alike each is to its sixth
    neighbour. passages: the share of the smaller one's fingerprints that the other has. view: in which they are most
    alike. shared: the number of features in common that few have. marks, own: lines, of the first and the second.
    """

    first: Work
    second: Work
    score: float
    alike: float
    surroundings: float
    passages: float
    view: str
    shared: int
    marks: tuple[dict[int, Mark], dict[int, Mark]]
    own: tuple[set[int], set[int]]


# -- what a student wrote --


def find_own(statements: Sequence[Statement], given: Sequence[Statement]) -> list[Statement]:
    """Return the statements that were not handed out: runs of those are removed, whatever their names and layout."""
    shapes, theirs = [one.shape for one in statements], [one.shape for one in given]
    match = difflib.SequenceMatcher(None, shapes, theirs, autojunk=False)
    removed = {
        i
        for block in match.get_matching_blocks()
        if block.size >= GIVEN_RUN
        for i in range(block.a, block.a + block.size)
    }
    return [one for i, one in enumerate(statements) if i not in removed]


def find_uses(statements: Iterable[Statement]) -> Spots:
    """Return the uses of values: the form of the statement that sets a variable, and of one that reads it."""
    found: Spots = defaultdict(list)
    setters: dict[str, Statement] = {}
    for one in statements:
        if one.tree[0] == "function":
            setters = {}
        target, whole = find_target(one.tree)
        names = find_names(one.tree)
        for name in set(names[1:] if target and whole else names):
            if name in setters:
                found[f"{setters[name].shape} -> {one.shape}"] += [one.lines, setters[name].lines]
        if target and whole:
            setters[target] = one
    return found


def find_words(reading: Reading, statements: Iterable[Statement]) -> Spots:
    """Return the statements as they are written, with their names, and longer comments."""
    found: Spots = defaultdict(list)
    for one in statements:
        found[one.text].append(one.lines)
    for line, text in reading.comments:
        words = re.findall(r"\w+", text.lower())
        if len(words) >= SHORTEST_COMMENT:
            found["// " + " ".join(words)].append((line, line))
    return found


def find_grams(statements: Iterable[Statement]) -> Spots:
    """Return fingerprints: of every window of neighbouring k-grams of tokens, the one with the least hash.

    Winnowing: S. Schleimer, D. Wilkerson and A. Aiken, "Winnowing: Local Algorithms for Document Fingerprinting",
    SIGMOD 2003, with the rightmost of equal hashes. Every common run of GRAM + WINDOW - 1 tokens leaves one in common.
    """
    tokens = [(token, one.lines) for one in statements for token in [*re.findall(r"[$\w]+|[^\w\s]", one.shape), ";"]]
    texts = [" ".join(token for token, _ in tokens[i : i + GRAM]) for i in range(len(tokens) - GRAM + 1)]
    hashes = [zlib.crc32(text.encode()) for text in texts]
    chosen = {
        min(range(i, min(i + WINDOW, len(hashes))), key=lambda at: (hashes[at], -at))
        for i in range(max(1, len(hashes) - WINDOW + 1))
        if hashes
    }
    found: Spots = defaultdict(list)
    for at in sorted(chosen):
        lines = [lines for _, lines in tokens[at : at + GRAM]]
        found[texts[at]].append((min(first for first, _ in lines), max(last for _, last in lines)))
    return found


def make_prints(text: str, given: Sequence[Statement] = ()) -> Prints:
    """Return what is compared of a submission. given: the statements of the exercise as it was handed out."""
    reading = read_statements(text)
    own = find_own(reading.statements[:MOST_COMPARED], given)
    views = {
        "uses": find_uses(own),
        "uses with indices in place": find_uses(inline_values(own, only_indices=True)),
        "uses with values in place": find_uses(inline_values(own)),
        "words": find_words(reading, own),
    }
    lines = {n for one in own for n in range(one.lines[0], one.lines[1] + 1)}
    return Prints(views, find_grams(own), lines)


# -- comparing --


class Table:
    """The features of one view. students: how many have each. alike, shared: of each two works."""

    def __init__(self, spots: Sequence[Spots], removed: set[str], rows: np.ndarray):
        holders: dict[tuple[str, int], list[int]] = defaultdict(list)
        for i, one in enumerate(spots):
            for feature, places in one.items():
                for copy in range(min(len(places), MOST_COUNTED) if feature not in removed else 0):
                    holders[feature, copy].append(i)
        total = int(rows[-1]) + 1
        everything = np.zeros(len(spots))
        self.students: dict[str, int] = {}
        self.shared = np.zeros((len(spots), len(spots)))
        for (feature, copy), who in holders.items():
            count = len(set(rows[who].tolist()))
            weight = math.log((total + 1) / count)
            everything[who] += weight
            if count > 1:
                self.shared[np.ix_(who, who)] += weight
            if copy == 0:
                self.students[feature] = count
        either = everything[:, None] + everything[None, :] - self.shared
        self.alike = np.divide(self.shared, either, out=np.zeros_like(self.shared), where=either > 0)


@dataclass
class Class:
    """The work on one exercise, ordered by student. rows: the student's number of each. known: features handed out."""

    works: list[Work]
    prints: list[Prints]
    rows: np.ndarray
    known: dict[str, set[str]]
    tables: dict[str, Table]

    @property
    def students(self) -> int:
        """Return how many students there are."""
        return int(self.rows[-1]) + 1


def read_class(works: Iterable[Work], handed: Handed, show: Callable[[int], None] = lambda _: None) -> Class:
    """Return the work on an exercise, ready to be compared. show: called with the number of submissions read."""
    ordered = sorted(works, key=lambda one: one.student)
    given = read_statements(handed.exercise).statements if handed.exercise else []
    prints = []
    for number, work in enumerate(ordered, 1):
        prints.append(make_prints(work.text, given))
        show(number)
    places = {student: i for i, student in enumerate(dict.fromkeys(one.student for one in ordered))}
    rows = np.array([places[one.student] for one in ordered], dtype=int)
    theirs = [make_prints(handed.exercise), *(make_prints(text, given) for text in handed.solutions)]
    known = {view: {feature for one in theirs for feature in one.views[view]} for view in VIEWS}
    known["passages"] = {feature for one in theirs for feature in one.grams}
    tables = {}
    if ordered:
        tables = {view: Table([one.views[view] for one in prints], known[view], rows) for view in VIEWS}
    return Class(ordered, prints, rows, known, tables)


def find_pairs(made: Class, most: int) -> list[Pair]:
    """Return the first pairs of students by score, at most `most`; of each pair the attempts that are most alike."""
    if not made.works or made.students < 2:
        return []
    begins = np.flatnonzero(np.diff(made.rows, prepend=-1))
    scores, bases = score_views(made, begins)
    best, which = scores.max(0), scores.argmax(0)
    firsts, seconds = np.triu_indices(len(begins), 1)
    order = np.argsort(-best[firsts, seconds], kind="stable")[:most]
    ends = [*begins[1:].tolist(), len(made.works)]
    found = []
    for a, b in zip(firsts[order].tolist(), seconds[order].tolist()):
        if best[a, b] == -np.inf:
            break
        view = list(VIEWS)[which[a, b]]
        part = made.tables[view].alike[begins[a] : ends[a], begins[b] : ends[b]]
        i, j = np.unravel_index(part.argmax(), part.shape)
        numbers = float(best[a, b]), float(part.max()), float(bases[which[a, b], a, b])
        found.append(_make_pair(made, int(begins[a] + i), int(begins[b] + j), view, numbers))
    return found


def score_views(made: Class, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and surroundings, of shape (views, students, students); -inf where nothing is shared.

    begins: the first work of each student.
    """
    scores, bases = [], []
    for view, weight in VIEWS.items():
        alike = _reduce(made.tables[view].alike, begins)
        base = find_surroundings(alike)
        scores.append(weight * score_alike(alike, base, _reduce(made.tables[view].shared, begins)))
        bases.append(base)
    return np.stack(scores), np.stack(bases)


def score_alike(alike: np.ndarray, base: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return what pairs have beyond their surroundings, by how much they share; -inf where nothing is shared."""
    score = (alike - base) / (1 - base + SOFTNESS) * np.log1p(shared)
    return np.where(alike > 0, score, -np.inf)


def _reduce(table: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Return the largest value of each two students' works."""
    return np.maximum.reduceat(np.maximum.reduceat(table, begins, 0), begins, 1)


def find_surroundings(alike: np.ndarray) -> np.ndarray:
    """Return, for each pair of students, how alike the more crowded one is to its sixth neighbour; 0 without six."""
    others = np.array(alike)
    np.fill_diagonal(others, -1.0)
    crowd = np.zeros(len(others))
    if len(others) > NEIGHBOUR:
        crowd = np.sort(others, 1)[:, -NEIGHBOUR]
    return np.maximum(crowd[:, None], crowd[None, :])


def _make_pair(made: Class, i: int, j: int, view: str, numbers: tuple[float, float, float]) -> Pair:
    """Return a pair with the lines that both have."""
    one, other = made.prints[i], made.prints[j]
    marks: tuple[dict[int, Mark], dict[int, Mark]] = ({}, {})
    rare = max(2.0, RARE_SHARE * made.students)
    shared = 0
    for name in dict.fromkeys(("uses", "words", view)):
        ours, theirs = one.views[name], other.views[name]
        for feature in sorted((ours.keys() & theirs.keys()) - made.known[name]):
            students = made.tables[name].students[feature]
            shared += students <= rare and name == view
            for here, there in zip(ours[feature], theirs[feature]):
                _mark(marks[0], here, there, students)
                _mark(marks[1], there, here, students)
    ours, theirs = (set(prints.grams) - made.known["passages"] for prints in (one, other))
    passages = len(ours & theirs) / max(1, min(len(ours), len(theirs)))
    own = one.own, other.own
    return Pair(made.works[i], made.works[j], *numbers, passages, view, shared, marks, own)


def _mark(marks: dict[int, Mark], here: tuple[int, int], there: tuple[int, int], students: int) -> None:
    """Mark lines of one file by their rarest feature."""
    for line in range(here[0], here[1] + 1):
        if line not in marks or marks[line].students > students:
            marks[line] = Mark(min(there[1], there[0] + line - here[0]), students)
