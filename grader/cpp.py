"""Reads C++ in a student's file: functions and their parameters, what they return, where variables are made, how kernels are launched."""

from __future__ import annotations

import dataclasses
import re

KEYWORDS = {"if", "for", "while", "switch", "catch", "return", "else", "do"}
HEAD = re.compile(r"(?<![\w:])([A-Za-z_]\w*)\s*\(([^;{}()]*)\)\s*(?:const\s*)?\{")
LAUNCH = re.compile(r"(\w+)\s*(?:<[^<>;{}()]*>)?\s*<<<.*?>>>\s*\(", re.DOTALL)
POINTER = r"\.\s*(?:(?:mutable_|const_)?data_ptr|data)\b"


@dataclasses.dataclass(frozen=True)
class Function:
    """A function with a body. parameters: (type, name). start, end: of the body, in the text. kernel: it runs on the GPU."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    start: int
    end: int
    kernel: bool

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.parameters]


@dataclasses.dataclass(frozen=True)
class Launch:
    """A kernel's launch: its arguments, each with the place in the text where it begins."""

    kernel: str
    arguments: tuple[tuple[str, int], ...]


class Text:
    """The text of a file whose strings hold C++. Comments are blank in `code`, so that places stay what they are."""

    def __init__(self, source: str):
        self.code = re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), source, flags=re.DOTALL)
        self.functions: dict[str, Function] = {}
        for head in HEAD.finditer(self.code):
            if head[1] in KEYWORDS or head[1].startswith("__"):
                continue
            before = re.split(r"[;{}\"]", self.code[: head.start()])[-1]
            parameters = tuple(_parameter(part) for part, _ in split(head[2]) if part.strip())
            self.functions[head[1]] = Function(head[1], parameters, head.end(), closing(self.code, head.end() - 1), "__global__" in before)
        self.bound = dict(re.findall(r"\.def\(\s*\"(\w+)\"\s*,\s*&?\s*(?:\w+::)*(\w+)", self.code))

    def function(self, called: str) -> Function | None:
        """What Python calls by this name."""
        return self.functions.get(self.bound.get(called, called))

    def line(self, at: int) -> int:
        """The line, from 1, of a place in the text."""
        return self.code.count("\n", 0, at) + 1

    def start(self, line: int, column: int | None = None) -> int:
        """The place of a line's column, from 0; without one, of its first letter that is no space."""
        lines = self.code.split("\n")
        text = lines[line - 1]
        return sum(len(above) + 1 for above in lines[: line - 1]) + (len(text) - len(text.lstrip()) if column is None else column)

    def around(self, *lines: int) -> Function | None:
        """The function in whose body all these lines stand."""
        return next((one for one in self.functions.values() if all(self.line(one.start) <= n <= self.line(one.end) for n in lines)), None)

    def heads(self, function: Function, at: int) -> list[tuple[int, int]]:
        """What a place of a function stands under, outermost first: begin and end of the text before each open {, and of the
        statement's own text before the place."""
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
        said = re.sub(r"^\s*#[^\n]*", "", self.code[begun:at], flags=re.MULTILINE)
        return open_ + ([(begun, at)] if said.strip() else [])

    def body(self, function: Function) -> str:
        return self.code[function.start : function.end]

    def find(self, pattern: str, function: Function) -> list[re.Match]:
        """Where a pattern matches in a function's body."""
        return list(re.compile(pattern).finditer(self.code, function.start, function.end))

    def returns(self, function: Function) -> list[tuple[list[str], int]]:
        """What each return statement hands back, and where it stands."""
        found = []
        for match in self.find(r"\breturn\b([^;]*);", function):
            value = match[1].strip()
            several = re.fullmatch(r"(?:std::make_tuple\s*\(|(?:std::)?(?:vector|tuple)\s*<.*?>\s*[{(]|\{+)(.*?)[})]+", value, re.DOTALL)
            found.append(([part.strip() for part, _ in split(several[1])] if several else [value], match.start()))
        return found

    def made(self, name: str, function: Function) -> list[tuple[str, int]]:
        """What a variable is set to: the right sides and where they stand."""
        found = []
        for match in self.find(rf"(?<![\w.]){name}\s*=(?!=)", function):
            end = match.end() + len(split(self.code[match.end() : function.end], ";")[0][0])
            found.append((split(self.code[match.end() : end])[0][0].strip(), match.start()))
        return found

    def launches(self, function: Function) -> list[Launch]:
        """The kernels that a function launches."""
        found = []
        for match in LAUNCH.finditer(self.code, function.start, function.end):
            inside = self.code[match.end() : closing(self.code, match.end() - 1)]
            parts = [(part.strip(), match.end() + at + len(part) - len(part.lstrip())) for part, at in split(inside)]
            found.append(Launch(match[1], tuple(parts)))
        return found

    def stores(self, kernel: Function, name: str) -> list[int]:
        """Lines on which a kernel writes through one of its pointers."""
        index, sets = r"\[(?:[^\[\];]|\[[^\[\];]*\])*\]", r"\s*[-+*/]?=(?!=)"
        stored = self.find(rf"(?<![\w.])(?:{name}\s*{index}{sets}|\*\s*{name}{sets}|atomic\w+\s*\(\s*&?\s*{name}\b)", kernel)
        return sorted({self.line(match.start()) for match in stored})


def split(text: str, mark: str = ",") -> list[tuple[str, int]]:
    """The parts between the marks that stand in no bracket, and where each begins."""
    parts, begun, depth = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == mark and depth <= 0 and not (mark == "," and _in_template(text[begun:at])):
            parts.append((text[begun:at], begun))
            begun = at + 1
    return [*parts, (text[begun:], begun)]


def _in_template(text: str) -> bool:
    """Whether a comma after this text stands between the arguments of a template."""
    return bool(re.search(r"\b(?:vector|tuple|array|pair|optional)\s*<[^<>]*$", text))


def closing(text: str, at: int) -> int:
    """Where the bracket at a place is closed; the text's end if it is not."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth <= 0:
            return place
    return len(text)


def _parameter(text: str) -> tuple[str, str]:
    text = text.partition("=")[0].strip()
    name = re.search(r"(\w+)\s*$", text)
    return (text[: name.start()].strip(), name[1]) if name else (text, "")
