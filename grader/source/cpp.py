"""Reads C++ in a student's file: functions, their parameters and results, where variables are set, and launches."""

from __future__ import annotations

import dataclasses
import re

KEYWORDS = {"if", "for", "while", "switch", "catch", "return", "else", "do"}
HEAD = re.compile(r"(?<![\w:])([A-Za-z_]\w*)\s*\(([^;{}()]*)\)\s*(?:const\s*)?\{")
LAUNCH = re.compile(r"(\w+)\s*(?:<[^<>;{}()]*>)?\s*<<<.*?>>>\s*\(", re.DOTALL)
POINTER = r"\.\s*(?:(?:mutable_|const_)?data_ptr|data)\b"


@dataclasses.dataclass(frozen=True)
class Function:
    """A function with a body. parameters: (type, name). head: where its declaration begins in the text. start, end: of
    the body. kernel, device: whether it is __global__, or __device__.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    head: int
    start: int
    end: int
    kernel: bool
    device: bool

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.parameters]


@dataclasses.dataclass(frozen=True)
class Launch:
    """A kernel launch: its arguments, each with its offset in the text."""

    kernel: str
    arguments: tuple[tuple[str, int], ...]


class Text:
    """The text of a file whose strings contain C++. In `code` comments are blanked, so that offsets stay the same."""

    def __init__(self, source: str):
        self.code = re.sub(
            r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), source, flags=re.DOTALL
        )
        self.functions: dict[str, Function] = {}
        for head in HEAD.finditer(self.code):
            if head[1] in KEYWORDS or head[1].startswith("__"):
                continue
            before = re.split(r"[;{}\"]", self.code[: head.start()])[-1].lstrip()
            parameters = tuple(_parameter(part) for part, _ in split(head[2]) if part.strip())
            self.functions[head[1]] = Function(
                head[1],
                parameters,
                head.start() - len(before),
                head.end(),
                closing(self.code, head.end() - 1),
                "__global__" in before,
                "__device__" in before,
            )
        self.bound = dict(re.findall(r"\.def\(\s*\"(\w+)\"\s*,\s*&?\s*(?:\w+::)*(\w+)", self.code))

    def function(self, called: str) -> Function | None:
        """Return the function that Python calls by this name, or None."""
        return self.functions.get(self.bound.get(called, called))

    def line(self, at: int) -> int:
        """Return the line, from 1, of an offset in the text."""
        return self.code.count("\n", 0, at) + 1

    def start(self, line: int, column: int | None = None) -> int:
        """Return the offset of a line's column, from 0; without a column, of its first character other than a space."""
        lines = self.code.split("\n")
        text = lines[line - 1]
        return sum(len(above) + 1 for above in lines[: line - 1]) + (
            len(text) - len(text.lstrip()) if column is None else column
        )

    def around(self, *lines: int) -> Function | None:
        """Return the function whose body contains all these lines, or None."""
        return next(
            (
                one
                for one in self.functions.values()
                if all(self.line(one.start) <= n <= self.line(one.end) for n in lines)
            ),
            None,
        )

    def heads(self, function: Function, at: int) -> list[tuple[int, int]]:
        """Return what encloses an offset of a function, outermost first: begin and end of the text before each open {,
        and of the statement's own text before the offset.
        """
        open_, begun, depth = [], function.start, 0
        for place in range(function.start, at):
            letter = self.code[place]
            depth += (letter in "([") - (letter in ")]")
            if depth <= 0 and letter in "{};":
                if letter == "{":
                    open_.append((begun, place))
                elif letter == "}" and open_:
                    open_.pop()
                begun = place + 1
        statement = re.sub(r"^\s*#[^\n]*", "", self.code[begun:at], flags=re.MULTILINE)
        return open_ + ([(begun, at)] if statement.strip() else [])

    def lines(self, function: Function) -> range:
        """Return the lines of a function, with its declaration."""
        return range(self.line(function.head), self.line(function.end) + 1)

    def body(self, function: Function) -> str:
        return self.code[function.start : function.end]

    def find(self, pattern: str, function: Function) -> list[re.Match]:
        """Return the matches of a pattern in a function's body."""
        return list(re.compile(pattern).finditer(self.code, function.start, function.end))

    def returns(self, function: Function) -> list[tuple[list[str], int]]:
        """Return the values of each return statement, and its offset."""
        found = []
        for match in self.find(r"\breturn\b([^;]*);", function):
            value = match[1].strip()
            several = re.fullmatch(
                r"(?:std::make_tuple\s*\(|(?:std::)?(?:vector|tuple)\s*<.*?>\s*[{(]|\{+)(.*?)[})]+", value, re.DOTALL
            )
            found.append(([part.strip() for part, _ in split(several[1])] if several else [value], match.start()))
        return found

    def made(self, name: str, function: Function) -> list[tuple[str, int]]:
        """Return the right sides that a variable is set to, and their offsets."""
        found = []
        for match in self.find(rf"(?<![\w.]){name}\s*=(?!=)", function):
            end = match.end() + len(split(self.code[match.end() : function.end], ";")[0][0])
            found.append((split(self.code[match.end() : end])[0][0].strip(), match.start()))
        return found

    def launches(self, function: Function) -> list[Launch]:
        """Return the launches in a function."""
        found = []
        for match in LAUNCH.finditer(self.code, function.start, function.end):
            inside = self.code[match.end() : closing(self.code, match.end() - 1)]
            parts = [(part.strip(), match.end() + at + len(part) - len(part.lstrip())) for part, at in split(inside)]
            found.append(Launch(match[1], tuple(parts)))
        return found

    def stores(self, kernel: Function, name: str) -> list[int]:
        """Return the lines on which a kernel writes through one of its pointers."""
        index, sets = r"\[(?:[^\[\];]|\[[^\[\];]*\])*\]", r"\s*[-+*/]?=(?!=)"
        stored = self.find(
            rf"(?<![\w.])(?:{name}\s*{index}{sets}|\*\s*{name}{sets}|atomic\w+\s*\(\s*&?\s*{name}\b)", kernel
        )
        return sorted({self.line(match.start()) for match in stored})


def split(text: str, mark: str = ",") -> list[tuple[str, int]]:
    """Return the parts between marks outside of brackets, and the offset of each."""
    parts, begun, depth = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == mark and depth <= 0 and not (mark == "," and _in_template(text[begun:at])):
            parts.append((text[begun:at], begun))
            begun = at + 1
    return [*parts, (text[begun:], begun)]


def _in_template(text: str) -> bool:
    """Return whether a comma after this text separates arguments of a template."""
    return bool(re.search(r"\b(?:vector|tuple|array|pair|optional)\s*<[^<>]*$", text))


def closing(text: str, at: int) -> int:
    """Return the offset where the bracket at an offset is closed; the text's end if it is not."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth <= 0:
            return place
    return len(text)


def _parameter(text: str) -> tuple[str, str]:
    text = text.partition("=")[0].strip()
    name = re.search(r"(?<!\w)(\w+)$", text)
    return (text[: name.start()].strip(), name[1]) if name else (text, "")
