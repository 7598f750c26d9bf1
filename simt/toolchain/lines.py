"""Find the source lines of addresses in compiled extensions, with one call of addr2line per extension."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from simt.frontend.tokens import Token, find_closing, get_text, tokenize

# The labels of the student's sources in #line: the arguments of load_inline. add_labels() adds a program's files.
_STUDENTS = re.compile(r"(?:.*/)?((?:cuda|cpp)_sources(?:\[\d+\])?):(\d+)")
_labels: set[str] = set()
_known: dict[tuple[str, int], tuple[str, int] | None] = {}


def add_labels(labels: Iterable[str]) -> None:
    """Add the labels of a program's files to the student's labels."""
    _labels.update(labels)


def find_source_lines(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], tuple[str, int] | None]:
    """Return, for each (module's path, offset), the innermost (label, line) in the student's sources, or None."""
    places = set(places)
    unknown: dict[str, list[int]] = {}
    for path, offset in places:
        if (path, offset) not in _known:
            unknown.setdefault(path, []).append(offset)
    for path, offsets in unknown.items():
        _known.update({(path, offset): place for offset, place in _run_addr2line(path, offsets).items()})
    return {place: _known.get(place) for place in places}


def choose_place(places: list[tuple[str, int] | None], source: str, line: int, defined: int = 0) -> tuple[str, int]:
    """Return the (label, line) of a fault.

    places: where it occurred, the innermost first, as find_source_lines returns them; others may be among them. source:
    the label of the launch. line: of the call that found the fault, or 0 if the places have to tell it. The call may be
    in another file than the launch: in that of the place with its line, or else of the first place, since compilers
    merge calls of several lines. defined: the line if nothing else is known.
    """
    known = [place for place in places if place]
    if not line:
        return known[0] if known else (source, defined)
    file = next((label for label, number in known if number == line), known[0][0] if known else source)
    return file, line


def _run_addr2line(path: str, offsets: list[int]) -> dict[int, tuple[str, int] | None]:
    command = ["addr2line", "-a", "-i", "-e", path]
    try:
        out = subprocess.run(
            command,
            input="".join(f"{o:#x}\n" for o in offsets),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=60,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return dict.fromkeys(offsets)
    found: dict[int, tuple[str, int] | None] = {}
    current = None
    for line in out.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = int(line, 16)
            found[current] = None
        elif current is not None and found[current] is None:
            found[current] = parse_place(line)
    return found


def parse_place(text: str) -> tuple[str, int] | None:
    """Return the label and line that a `text` of addr2line or the linker names, or None if it is not the student's."""
    if match := _STUDENTS.match(text):
        file, number = match[1], match[2]
    else:
        file, _, number = re.sub(r" \(discriminator \d+\)$", "", text).rpartition(":")
        file = next(
            (label for label in sorted(_labels, key=len, reverse=True) if file == label or file.endswith("/" + label)),
            "",
        )
    return (file, int(number)) if file and number.isdigit() and int(number) else None


# ---- the text that was compiled ----

_NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL)

TEXTS = "texts"  # file in a checked extension's folder with the paths of its compiled texts, one per line


def compiled_lines(text: str) -> dict[tuple[str, int], str]:
    """Return the lines of a text with #line marks, by the label and number from the marks."""
    lines, label, number = {}, "", 0
    for line in text.split("\n"):
        mark = re.match(r'#line (\d+) "([^"]+)"$', line)
        if mark:
            label, number = mark[2], int(mark[1])
            continue
        if label:
            lines[label, number] = line
            number += 1
    return lines


@lru_cache(maxsize=8)
def _read_texts(module: str) -> dict[tuple[str, int], str]:
    try:
        paths = (Path(module).parent / TEXTS).read_text(encoding="utf-8").splitlines()
        return {
            place: line
            for path in paths
            for place, line in compiled_lines(Path(path).read_text(encoding="utf-8")).items()
        }
    except OSError:
        return {}


def is_in_one_function(module: str, label: str, first: int, last: int) -> bool:
    """Return whether the lines from `first` to `last` lie in one function of the text from which `module` was compiled.

    False if the text is not known.
    """
    lines = _read_texts(module)
    if (label, first) not in lines or (label, last) not in lines:
        return False
    text = "\n".join(lines.get((label, n), "") for n in range(1, last))
    text = _NO_CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
    line, start, opened, outermost = 1, 0, [], 0  # opened: whether each open brace is a namespace's
    for at, mark in enumerate(text):
        if mark == "\n":
            line += 1
        elif mark == "{":
            opened.append(re.search(r"\b(namespace|extern)\b", text[start:at]) is not None)
            if opened.count(False) == 1 and not opened[-1]:
                outermost = line
        elif mark == "}" and opened:
            opened.pop()
        if mark in ";{}":
            start = at + 1
    return not all(opened) and outermost <= first


def find_indexed_array(module: str, label: str, line: int, column: int) -> str:
    """Return the name of the array that is indexed at this place of the text from which `module` was compiled, or "".

    For an index expression, g++ reports the place of the closing bracket and clang the beginning of the expression. In
    a macro both report the place of the macro's name.
    """
    lines = _read_texts(module)
    here = lines.get((label, line), "")
    if here[column - 1 : column] != "]":
        return _find_array_at(here[column - 1 :], lines)
    before = "\n".join(lines.get((label, n), "") for n in range(line - 3, line)) + "\n" + here[:column]
    while before.endswith("]"):
        depth = 0
        for at in range(len(before) - 1, -1, -1):
            depth += (before[at] == "]") - (before[at] == "[")
            if depth == 0:
                break
        before = before[:at].rstrip()
    name = re.search(r"[A-Za-z_]\w*$", before)
    return name[0] if name else ""


def ends_struct(module: str, name: str) -> bool:
    """Return whether an array with this name is the last member of a class in the text from which `module` was
    compiled.
    """
    tokens = [t for t in tokenize("\n".join(_read_texts(module).values())) if t.kind not in ("space", "comment")]
    return any(
        tokens[i].text == name and tokens[i].kind == "word" and get_text(tokens, i + 1) == "[" and _is_last(tokens, i)
        for i in range(len(tokens))
    )


def _is_last(tokens: list[Token], i: int) -> bool:
    """Return whether the array that is declared at i is the last member of a class: only functions follow.

    tokens: without spaces and comments.
    """
    end = i + 1
    while get_text(tokens, end) == "[":
        end = find_closing(tokens, end) + 1
    closing = _find_class_end(tokens, end)
    if get_text(tokens, end) != ";" or closing < 0:
        return False
    at = end + 1
    while at < closing:
        first = at
        while tokens[at].text not in (";", "{", ":") and at < closing:
            at += 1
        member = [t.text for t in tokens[first:at]]
        if tokens[at].text == "{":
            at = find_closing(tokens, at)
        at += 1
        is_variable = member and "(" not in member and member[0] not in ("enum", "static", "typedef", "using")
        if is_variable and tokens[at - 1].text != ":":
            return False
    return True


def _find_class_end(tokens: list[Token], i: int) -> int:
    """Return the index of the brace that closes the class whose members the token at i is among, or -1."""
    depth = 0
    for j in range(i, -1, -1):
        if tokens[j].kind == "mark":
            depth += (tokens[j].text == "}") - (tokens[j].text == "{")
        if depth < 0:
            head = []
            for k in range(j - 1, -1, -1):
                if tokens[k].text in (";", "{", "}", ")", "="):
                    break
                head.append(tokens[k].text)
            return find_closing(tokens, j) if "struct" in head or "class" in head else -1
    return -1


def _find_array_at(text: str, lines: dict[tuple[str, int], str]) -> str:
    """Return the array in the expression at the beginning of `text`: a member, a variable, or a macro's only array."""
    if match := re.match(r"(?:[A-Za-z_]\w*\s*(?:\.|->)\s*)*([A-Za-z_]\w*)\s*\[", text):
        return match[1]
    macro = re.match(r"[A-Za-z_]\w*", text)
    bodies = [
        match[1]
        for line in lines.values()
        if macro and (match := re.match(rf"\s*#\s*define\s+{macro[0]}\b(?:\([^)]*\))?(.*)", line))
    ]
    names = {name for body in bodies for name in re.findall(r"([A-Za-z_]\w*)\s*\[", body)}
    return names.pop() if len(names) == 1 else ""
