"""Convert messages of compilers and linkers to diagnostics at the student's own lines."""

from __future__ import annotations

import contextlib
import ctypes
import re
import subprocess
from difflib import SequenceMatcher
from pathlib import Path

from simt.errors import Diagnostic
from simt.toolchain.compilers import find_last_line
from simt.toolchain.headers import SIMT
from simt.toolchain.lines import compiled_lines, parse_place
from simt.toolchain.units import Unit

_MESSAGE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>fatal error|error|warning|note): "
    r"(?P<message>.*)$"
)
_VIA = re.compile(r"^(?:In file included|\s+) from ([^:]+):(\d+)|^([^:]+):(\d+):\d+:   required from here")


def read_diagnostics(output: str, unit: Unit) -> list[Diagnostic]:
    """Return the compiler's messages at the student's lines. An error in a header gets the line that includes it."""
    compiled = compiled_lines(unit.text)
    found, via, severity = [], None, ""
    for text in output.splitlines():
        if inclusion := _VIA.match(text):
            place = inclusion[1] or inclusion[3], int(inclusion[2] or inclusion[4])
            via = place if place in compiled else via
        match = _MESSAGE.match(text)
        if not match:
            continue
        before, severity = severity, "error" if "error" in match["severity"] else match["severity"]
        place = match["file"], int(match["line"])
        message = _translate_to_cuda(_strip_assertion(match["message"]), unit.lines.get(place, ""))
        if severity == "note" and "to match this ‘{’" in message and before == "error" and place in unit.lines:
            first = 1 if found[0].message.startswith("unterminated") else 0
            found.insert(
                first,
                Diagnostic(*place, int(match["column"] or 0), "error", "This ‘{’ is never closed.", unit.lines[place]),
            )
        elif place in unit.lines:
            kept = unit.lines[place] == compiled.get(place)  # otherwise the columns have changed
            found.append(
                Diagnostic(*place, int(match["column"] or 0) if kept else 0, severity, message, unit.lines[place])
            )
        elif severity == "error":
            place = via or place
            if place[0] == "functions":
                found += _explain_binding(message, compiled[place], unit, found)
            else:
                if not Path(match["file"]).is_relative_to(SIMT) and Path(match["file"]).is_file():
                    message = f"{Path(match['file']).name}, line {match['line']}: {message}"
                found.append(
                    Diagnostic(
                        *(place if place in unit.lines else (unit.label, 0)),
                        0,
                        severity,
                        message,
                        unit.lines.get(place, ""),
                    )
                )
        via = via if severity == "note" else None
    return _put_in_order(_drop_announcements(found))


def _drop_announcements(found: list[Diagnostic]) -> list[Diagnostic]:
    """Drop each note that announces others, such as "suggested alternatives:", if those are all in headers."""
    following = [*found[1:], None]
    return [
        d
        for d, after in zip(found, following)
        if not (d.severity == "note" and d.message.endswith(":") and (after is None or after.severity != "note"))
    ]


def _put_in_order(found: list[Diagnostic]) -> list[Diagnostic]:
    """Put errors before the notes and warnings that explain them. Keep one error per launch that cannot be parsed."""
    errors = [d for d in found if d.severity == "error"]
    unread = {(d.source, d.line): d for d in reversed(errors) if d.message == _NO_LAUNCH}
    errors = [d for d in errors if unread.get((d.source, d.line), d) is d]
    return errors + [d for d in found if d.severity != "error"]


_NO_LAUNCH = "A launch is kernel<<<grid, block>>>(arguments). Add the name, the >>> or the parenthesis that is missing."


_GUESS = re.compile(r"^‘(\w+)’ .*(?P<guess>; did you mean ‘(\w+)’\?)$")
_ALIKE = 0.6  # of two names, below which the compiler's guess is left out: `oc` for `oz` leads away from `oy`


def _strip_assertion(message: str) -> str:
    """Return the message of a static_assert without the compiler's prefix."""
    if asserted := re.match(r"static_assert failed (?:due to requirement '.*' )?\"(.*)\"$", message):  # clang
        return asserted[1].replace('\\"', '"')
    return message.removeprefix("static assertion failed: ")


def _translate_to_cuda(message: str, line: str) -> str:
    """Translate a message of g++ about a rewritten launch to the terms of the launch."""
    message = re.sub(r" \[-f[\w-]+\]$", "", message)
    message = re.sub(r"; did you mean ‘(?:at::_ops|simt)::[^’]*’\?$", "", message)  # names that are not for students
    if (guess := _GUESS.search(message)) and SequenceMatcher(None, guess[1], guess[3]).ratio() < _ALIKE:
        message = message[: guess.start("guess")]
    if "<<<" not in line:
        return message
    if match := re.match(
        r"no match for call to ‘\(simt::TypedLaunch<.*lambda\(.*?\)>(?:, (.*))?>\) \((.*)\)’$", message
    ):
        return f"The kernel's parameters are ({match[1] or ''}), but this launch gives ({_format_types(match[2])})."
    match = re.match(r"no matching function for call to ‘(.+?)\((.*)\)’$", message)
    if match and re.search(rf"\b{re.escape(match[1].split('<')[0])}\b.*<<<", line):
        return f"No kernel `{match[1]}` takes the arguments ({_format_types(match[2])})."
    if "simt::config(" in message:
        return (
            "A launch takes two to four arguments between <<< and >>>: grid, block, bytes of dynamic shared memory, "
            "stream."
        )
    if re.match(r"expected primary-expression before ‘(<|<<|>)’ token", message):
        return _NO_LAUNCH
    return message


def _format_types(types: str) -> str:
    return re.sub(r"const (\w[\w: ]*)&", r"\1", types.replace(" const&", "")).replace("&", "")


def _explain_binding(message: str, line: str, unit: Unit, found: list[Diagnostic]) -> list[Diagnostic]:
    """Translate a message about the binding, which follows cpp_sources. Only the first message is kept."""
    if found:
        return []
    if message.startswith("expected"):
        place, text = max((p, t) for p, t in unit.lines.items() if t.strip())
        return [Diagnostic(*place, 0, "error", "A ‘;’ or a ‘}’ is missing after this line.", text)]
    name = re.search(r'make_function\("([^"]*)"', line)
    if "unresolved overloaded" in message:
        message = "several functions have this name. Rename all but one"
    elif match := re.match(r"no matching function for call to ‘to_value\((.*)\)’$", message):
        message = f"its result type, {match[1]}, has no counterpart in Python"
    return [
        Diagnostic("functions", 0, 0, "error", f"`{name[1] if name else 'functions='}` cannot be bound: {message}.")
    ]


_LINKED = re.compile(r"^(?P<place>[^(]+:\d+):(?:\([^)]*\):)? (?P<message>.*)$")


def read_link_errors(result: subprocess.CompletedProcess) -> list[Diagnostic]:
    """Return the linker's messages at the student's lines, one for each name, or what it says last."""
    found: dict[str, Diagnostic] = {}
    for text in result.stderr.splitlines():
        at = _LINKED.match(text)
        place = (parse_place(at["place"]) if at else None) or ("", 0)
        undefined = re.search(r"undefined reference to [`'](.+)'", text)
        twice = re.search(r"multiple definition of [`'](.+?)'", text)
        library = re.search(r"cannot find ([^:\s]+)", text)
        if undefined and undefined[1] != "simt_functions":
            message = _describe_undefined(undefined[1])
        elif twice:
            message = f"`{twice[1]}` is defined in more than one source. Keep one definition."
        elif library:
            message = f"extra_ldflags= names {library[1]}, which was not found. Check the name and the -L folder."
        elif "relocation truncated to fit" in text:
            message = (
                "The variables outside functions are larger than 2 GB together. Make the arrays smaller, or allocate "
                "them with malloc() and cudaMalloc()."
            )
        else:
            continue
        if message not in found or (place[1] and not found[message].line):
            found[message] = Diagnostic(*place, 0, "error", message)
    return list(found.values()) or [Diagnostic("", 0, 0, "error", _find_link_error(result))]


def _find_link_error(result: subprocess.CompletedProcess) -> str:
    """Return the linker's last message: the compiler, which has called it, only adds that there is one."""
    lines = [line for line in result.stderr.splitlines() if line.strip() and not line.startswith("collect2:")]
    return re.sub(r"^\S*\bld\S*: ", "", lines[-1].strip()) if lines else find_last_line(result)


def read_load_error(message: str) -> str:
    """Return the sentence for a symbol that the dynamic linker did not find; empty for any other message of it."""
    found = re.search(r"undefined symbol: (\w+)", message)
    return _describe_undefined(demangle(found[1])) if found else ""


def _describe_undefined(name: str) -> str:
    return f"`{name}` is declared and called, but no source defines it with exactly these parameter types."


def demangle(symbol: str) -> str:
    """Return `run(at::Tensor)` for _Z3runN2at6TensorE."""
    with contextlib.suppress(OSError, AttributeError):
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        function.restype = ctypes.c_char_p
        return (function(symbol.encode(), None, None, None) or symbol.encode()).decode()
    return symbol
