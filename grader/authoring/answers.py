"""Recognise the answers of exercises in any text, whatever its layout and the names in it.

Python and CUDA are split into tokens by simt's tokeniser. Comments, `#` lines, braces and semicolons do not count, all
types are the same token, and a name counts by where it was used before. So a window of WINDOW tokens looks the same
after renaming, reformatting and a change of types. Windows that the exercise itself hands out are no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from grader.problems import exercises
from grader.problems.skeletons import CLOSE, DEFECT, INSTEAD, OPEN, skeleton
from simt.frontend.tokens import tokenize

WINDOW = 20  # tokens that are compared at once
RUN = (
    48  # tokens in a row that give an answer away, about five lines; the longest idiom, indices of 4-D tensors, has 47
)
SHARE = 0.6  # of an answer's windows, wherever they stand: statements in another order
WHOLE = 0.9  # of an answer that is shorter than RUN
MANY_LINES = 4  # that begin with a mark of a diff
DEPTH = 3  # comments in strings in comments

DROPPED = set("{};\\\"'`") | set("const constexpr __restrict__ static inline volatile unsigned signed".split())
TYPES = set("int long short char bool float double half auto size_t int64_t int32_t uint32_t T scalar_t".split())
TYPE = "type"
KEPT = set(
    "if else for while do return break continue switch case sizeof template typename struct class true false nullptr "
    "void this new delete threadIdx blockIdx blockDim gridDim torch at std dim3 float4 float2 "
    "def lambda in not and or is None True False self import from with as".split()
)
QUOTED = re.compile(r"^[ \t]*[+>|-]", re.MULTILINE)  # lines of a diff, or quoted in Markdown
MEMBERS = set("xyzw")  # of threadIdx and of vectors; elsewhere they are variables
ESCAPE = re.compile(r"\\(n|t|r|\\|\"|'|\n)")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
NAME = re.compile(r"[A-Za-z_]\w*\Z")
NUMBER = re.compile(r"(\d+)\.?0*[fFuUlL]*\Z")


@dataclass
class Stream:
    """Tokens of a text in the order in which they count, and the line of each."""

    tokens: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, token: str, line: int) -> None:
        """Append one token."""
        self.tokens.append(token)
        self.lines.append(line)


def read_streams(text: str, line: int = 1, depth: int = DEPTH) -> Iterator[Stream]:
    """Yield the tokens of a text, those in its strings among them; then those of all its comments together."""
    code, comments = Stream(), []
    _read_code(text, line, code, comments, depth)
    yield code
    if comments and depth:
        begun = comments[0][1]
        yield from read_streams("\n".join(one for one, _ in comments), begun, depth - 1)


def _read_code(text: str, line: int, code: Stream, comments: list[tuple[str, int]], depth: int) -> None:
    """Append the tokens of a text to `code`, and its comments with their lines to `comments`."""
    directive: list[str] | None = None  # a line that begins with #, which is a comment in Python
    for token in tokenize(text):
        at = line + token.line - 1
        if directive is not None and not (token.kind == "space" and "\n" in token.text):
            directive.append(token.text)
            continue
        if directive is not None:
            comments.append(("".join(directive), at))
            directive = None
        if token.kind == "comment":
            comments.append((token.text.strip("/*"), at))
        elif token.text == "#":
            directive = []
        elif token.kind in ("string", "char"):
            if depth:
                _read_code(_unescape(token.text), at, code, comments, depth - 1)
        elif token.kind != "space" and token.text not in DROPPED:
            code.add(_normalise(token.text, code.tokens[-1:]), at)
    if directive:
        comments.append(("".join(directive), line))


def _unescape(literal: str) -> str:
    """Return what a string literal of Python or C++ holds, without its quotes."""
    inside = re.sub(r"^\w*(?:R\"[^(]*\(|[\"'])|(?:\)\w*)?[\"']$", "", literal)
    return ESCAPE.sub(lambda match: ESCAPES.get(match[1], match[1]), inside)


def _normalise(token: str, before: list[str]) -> str:
    """Return what stands for a token after another one: a type, a number without its suffix, a vector's member."""
    if token in TYPES:
        return TYPE
    if token in MEMBERS and before == ["."]:
        return f".{token}"
    number = NUMBER.match(token)
    return number[1] if number else token


def _is_name(token: str) -> bool:
    """Return whether a token may be renamed."""
    return NAME.match(token) is not None and token not in KEPT and token != TYPE and not token.startswith("__")


@dataclass
class Answer:
    """One marked place of an exercise. positions: how many windows of its own it has; need: so many tokens in a row are
    too many; defect: whether the place is one to be mended.
    """

    exercise: str
    positions: int
    need: int
    defect: bool


@dataclass(frozen=True)
class Find:
    """Part of an answer in a text: the most tokens in a row and of how many, the share of the exercise's answers, and
    the first and last line of these tokens.
    """

    exercise: str
    tokens: int
    total: int
    share: float
    lines: tuple[int, int]


class Answers:
    """The answers of some exercises, to look for in texts."""

    def __init__(self, names: Iterable[str]):
        """Read the solutions of these exercises. Raises OSError and ExerciseError."""
        self._codes: dict[str, int] = {}
        self._answers: list[Answer] = []
        self._windows: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        self.exercises = list(names)
        for name in self.exercises:
            self._add(name, exercises.read_solution(name))
        self._shapes = {tuple(max(code, -1) for code in window) for window in self._windows}

    def _add(self, name: str, solution: str) -> None:
        """Add the answers of one exercise."""
        given: set[tuple[int, ...]] = set()
        for stream in read_streams(skeleton(solution, name)):
            given.update(window for _, window in self._read_windows(stream.tokens, learn=True))
        for before, inside, after, defect in _find_places(solution):
            short = defect or len(inside) < RUN
            extra = WINDOW if short else 0
            left, right = before[len(before) - extra :] if extra else [], after[:extra]
            number = len(self._answers)
            own: list[int] = []
            for at, window in self._read_windows([*left, *inside, *right], learn=True):
                if window not in given:
                    self._windows.setdefault(window, []).append((number, at))
                    own.append(at)
            if own:
                span = _longest(own) + WINDOW - 1
                need = RUN if span >= RUN else max(WINDOW, round(WHOLE * span))
                self._answers.append(Answer(name, len(own), need, defect))

    def _encode(self, tokens: Sequence[str], learn: bool) -> tuple[list[int], list[int]]:
        """Return a code for each token, -1 for names, and how far back the same name stands, 0 if nowhere."""
        codes, back, last = [], [], {}
        for at, token in enumerate(tokens):
            if _is_name(token):
                codes.append(-1)
                back.append(at - last.get(token, at))
                last[token] = at
            else:
                code = self._codes.setdefault(token, len(self._codes)) if learn else self._codes.get(token, 1 << 30)
                codes.append(code)
                back.append(0)
        return codes, back

    def _read_windows(self, tokens: Sequence[str], learn: bool = False) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each window of the tokens with its place; of a text, only those that an answer may have."""
        codes, back = self._encode(tokens, learn)
        for at in range(len(tokens) - WINDOW + 1):
            shape = tuple(codes[at : at + WINDOW])
            if learn or shape in self._shapes:
                yield at, tuple(_place(code, back[at + i], i) for i, code in enumerate(shape))

    def find(self, text: str, but: str = "") -> list[Find]:
        """Return what a text gives away of the answers, other than of the exercise `but`: the most of each exercise."""
        found: dict[str, list[Find]] = {}
        quoted = [QUOTED.sub("", text)] if len(QUOTED.findall(text)) >= MANY_LINES else []
        for stream in (stream for each in (text, *quoted) for stream in read_streams(each)):
            hits: dict[int, dict[int, set[int]]] = {}
            for at, window in self._read_windows(stream.tokens):
                for number, position in self._windows.get(window, ()):
                    hits.setdefault(number, {}).setdefault(at, set()).add(position)
            for number, places in hits.items():
                answer = self._answers[number]
                if answer.exercise != but and (one := self._judge(answer, places, stream.lines)):
                    found.setdefault(answer.exercise, []).append(one)
        for name in [name for name in found if self._is_too_few(name, found[name])]:
            del found[name]
        return [one for finds in found.values() for one in finds]

    def _judge(self, answer: Answer, places: dict[int, set[int]], lines: list[int]) -> Find | None:
        """Return what the windows of an answer at these places of a text give away; None if that is mere idiom."""
        seen = len(set().union(*places.values()))
        length, begin = _longest_at(sorted(places))
        tokens = length + WINDOW - 1
        if tokens < answer.need and seen < SHARE * answer.positions:
            return None
        share = seen / sum(one.positions for one in self._answers if one.exercise == answer.exercise)
        place = lines[begin], lines[begin + tokens - 1]
        return Find(answer.exercise, tokens, answer.positions + WINDOW - 1, share, place)

    def _is_too_few(self, name: str, finds: list[Find]) -> bool:
        """Return whether a text has too few of the mended places of an exercise: one may stand in any right kernel."""
        mended = sum(answer.defect for answer in self._answers if answer.exercise == name)
        return len(finds) < (mended + 1) // 2


def _place(code: int, back: int, index: int) -> int:
    """Return a token's code in a window: a name's is how far back the same name stands in the window."""
    return code if code >= 0 else -1 - (back if back <= index else 0)


def _longest(numbers: Sequence[int]) -> int:
    return _longest_at(numbers)[0]


def _longest_at(numbers: Sequence[int]) -> tuple[int, int]:
    """Return how many of the sorted numbers follow each other without a gap at most, and the first of them."""
    best, begin = (0, 0), None
    for at, number in enumerate(numbers):
        if begin is None or number != numbers[at - 1] + 1:
            begin = number
        best = max(best, (number - begin + 1, begin), key=lambda one: one[0])
    return best


def _find_places(solution: str) -> Iterator[tuple[list[str], list[str], list[str], bool]]:
    """Yield the tokens before, in and after each marked place of a solution, and whether it is one to be mended.

    Where an exercise shows wrong lines, what counts is the right ones.
    """
    kept: list[str] = []
    spans: list[tuple[int, int, bool]] = []
    begun, skip = None, False
    for line in solution.split("\n"):
        if OPEN.match(line) or DEFECT.match(line):
            begun = len(kept), bool(DEFECT.match(line))
        elif begun is not None and CLOSE.match(line):
            spans.append((begun[0], len(kept), begun[1]))
            begun, skip = None, False
        elif begun is not None and INSTEAD.match(line):
            skip = True
        elif not skip:
            kept.append(line)
    for first, last, defect in spans:
        parts = ("\n".join(lines) for lines in (kept[:first], kept[first:last], kept[last:]))
        before, inside, after = (next(read_streams(part)).tokens for part in parts)
        yield before, inside, after, defect
