"""Name the statements of an exercise that a student's file lacks, where they explain the failure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Set

from grader.problems import exercises
from grader.source.cpp import Function, Text, closing
from grader.source.loops import CHANGES
from grader.source.place import join_lines
from grader.verdict import Reason, Stage, Verdict

UNORDERED = {Reason.race, Reason.uninitialized, Reason.schedule_dependent, Reason.nondeterministic}
UNNAMED = {Reason.compile_error}  # what a missing declaration fails with
# What a missing test, or a missing change of a variable, does not fail with.
ELSEWHERE = UNNAMED | {
    *(Reason.barrier_divergence, Reason.warp_divergence, Reason.syntax_error, Reason.no_compiler),
    *(Reason.link_error, Reason.undeclared_function, Reason.missing_cpp_sources, Reason.import_error),
}
MOST_MISSING = 3  # statements of a function: one that lacks more has been written anew

GUARD = re.compile(r"if\s*\((?P<test>.*)\)\s*(?:return\b[^;]*|continue|break)\s*;")
STORE = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\[[^=;]*\]\s*[-+*/]?=(?!=)[^;]*;")
CHANGE = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)(?P<value>[^;]*);")
# `acc[d] *= scale;`, which may be the body of a loop
UPDATE = re.compile(
    r"(?:for\s*\([^{}]*\)\s*)?(?P<name>[A-Za-z_]\w*)\s*\[[^=;]*\]\s*(?P<sign>[-+*/])=(?!=)\s*(?P<value>[^;]*);"
)
LAUNCH = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:<(?!<)[^;]*>)?\s*<<<[^;]*;")
LEFT_OUT = {
    "+": "nothing adds `{value}` to `{name}`",
    "-": "nothing subtracts `{value}` from `{name}`",
    "*": "nothing multiplies `{name}` by `{value}`",
    "/": "nothing divides `{name}` by `{value}`",
}
DECLARATION = re.compile(
    r"(?:(?:const|constexpr|unsigned)\s+)*[A-Za-z_][\w:]*(?:\s*\*)?\s+(?P<rest>[A-Za-z_]\w*\s*=[^;]*);"
)
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
TYPES = {"int", "long", "unsigned", "size_t", "int64_t", "uint32_t"}
BARRIER = re.compile(r"\b__syncthreads\w*\s*\(")
COMPARED = re.compile(r"(?<!<)<=?(?!<)|(?<![->])>=?(?!>)|[!=]=|!")
JOINED = re.compile(r"&&|\|\|")


@dataclasses.dataclass(frozen=True)
class Missing:
    """Statements of the exercise that a file lacks. words: which, and what follows. after: the line above each.
    lines: those to mark; none for barriers, since the lines are marked where threads meet.
    """

    words: str
    after: tuple[int, ...]
    lines: tuple[int, ...] = ()


def find_missing(source: str, verdict: Verdict) -> Missing | None:
    """Return the statements of the exercise that the file lacks and that explain the failure; None for none."""
    failed = [stage for stage in verdict.stages if stage.evidence and stage.reason]
    if any(stage.reason in UNORDERED for stage in failed):
        barriers = exercises.find_missing_barriers(source, verdict.problem)
        if barriers:
            words = (
                f"{_name(f'a `{text}`', after)}Put it back: without it the threads do not wait for each other there."
                for after, text in barriers
            )
            return Missing(" ".join(words), tuple(after for after, _ in barriers))
    text, by_function, given = Text(source), {}, exercises.given_lines(source, verdict.problem)
    for after, statement in exercises.find_missing_statements(source, verdict.problem) if failed else ():
        function = text.around(after)
        if function is not None:
            by_function.setdefault(function.name, (function, []))[1].append((after, statement))
    found = [
        (_name(_quote(statement), after) + effect, after, lines or _find_gap(text, after))
        for function, missing in by_function.values()
        if len(missing) <= MOST_MISSING
        for after, statement in missing
        for effect, lines in [_explain(text, function, after, statement, failed, given)]
        if effect
    ]
    if not found:
        return None
    words, after, lines = zip(*found)
    return Missing(" ".join(words), after, tuple(sorted({n for some in lines for n in some})))


def _find_gap(text: Text, after: int) -> list[int]:
    """Return the line above a missing statement, and the one below if it is not blank."""
    lines = text.code.split("\n")
    return [after] + [n for n in (after + 1,) if n <= len(lines) and lines[n - 1].strip()]


def _name(statement: str, after: int) -> str:
    return f"The exercise has {statement} after line {after}, and it is missing in your file. "


def _quote(statement: str) -> str:
    """Return a statement as a message quotes it: of a launch, which is long, the kernel's name."""
    launch = LAUNCH.fullmatch(statement)
    return f"a launch of `{launch['name']}`" if launch else f"`{statement}`"


def _explain(
    text: Text, function: Function, after: int, statement: str, failed: list[Stage], given: Set[int]
) -> tuple[str, list[int]]:
    """Return what follows from a statement's absence and what to do, empty where it explains no failure; and the lines
    to mark if they are not those around it. given: the lines of the exercise that the file has.
    """
    reasons = {stage.reason for stage in failed}
    if declared := DECLARATION.fullmatch(statement):
        messages = " ".join(
            part for stage in failed for part in (stage.message, *(one.detail or "" for one in stage.evidence))
        )
        names = re.findall(r"(\w+)\s*=(?!=)", declared["rest"])
        unknown = [name for name in names if re.search(rf"['‘\"`]{name}['’\"`]", messages)]
        return (f"Put it back: it declares `{unknown[0]}`." if reasons & UNNAMED and unknown else ""), []
    if launch := LAUNCH.fullmatch(statement):
        is_launched = re.search(rf"(?<![\w.]){launch['name']}\s*(?:<[^;]*>)?\s*<<<", text.code) is not None
        explains = not reasons & ELSEWHERE and not is_launched
        return (f"Put it back: nothing else launches `{launch['name']}`." if explains else ""), []
    is_on_device = _runs_on_device(text, function)
    if guard := GUARD.fullmatch(statement):
        explains = not reasons & ELSEWHERE if is_on_device else Reason.launch_error in reasons
        return (_explain_guard(text, function, after, guard["test"], given) if explains else ""), []
    if update := UPDATE.fullmatch(statement):
        same = rf"(?<![\w.]){update['name']}\s*\[[^=;]*\]\s*{re.escape(update['sign'])}="
        explains = is_on_device and not reasons & ELSEWHERE and not re.search(same, text.body(function))
        return (f"Put it back: {LEFT_OUT[update['sign']].format(**update.groupdict())}." if explains else ""), []
    if store := STORE.fullmatch(statement):
        name, explains = store["name"], is_on_device and not reasons & ELSEWHERE
        is_stored = bool(text.stores(function, name))
        return (f"Put it back: nothing else stores to `{name}`." if explains and not is_stored else ""), []
    if change := CHANGE.fullmatch(statement):
        explains = not reasons & ELSEWHERE if is_on_device else Reason.noncontiguous_gradient in reasons
        return _explain_change(text, function, change["name"], change["value"], given) if explains else ("", [])
    return "", []


def _runs_on_device(text: Text, function: Function) -> bool:
    if function.kernel:
        return True
    return re.search(rf"__device__[^;{{}}]*\b{function.name}\s*\(", text.code[: function.start]) is not None


def _explain_guard(text: Text, function: Function, after: int, test: str, given: Set[int]) -> str:
    """Return what follows from a missing `if (test) return;`; empty where the function makes the test elsewhere."""
    known = set(NAME.findall(text.body(function))) | set(function.names)
    made = [set(NAME.findall(one)) for one in _find_tests(text.body(function))]
    for atom in JOINED.split(test):
        names = set(NAME.findall(atom))
        if not names <= known or any(names <= tested for tested in made):
            return ""  # the student has other names, or the same test
    runs = f"without it, the code below also runs where `{test}`"
    barriers = {text.line(match.start()) for match in text.find(BARRIER.pattern, function)}
    if any(line > after for line in barriers - set(given)):
        return (
            f"{runs[:1].upper()}{runs[1:]}. A `return` would keep threads from your barriers: put the condition around "
            "each access instead."
        )
    return f"Put it back: {runs}."


def _find_tests(body: str) -> list[str]:
    """Return the conditions of a body: of `if`, loops, `?` and bool variables, each in its parts between && and ||."""
    found, rest, done = [], "", 0
    for head in re.finditer(r"\b(?:if|while|for|switch)\s*\(", body):
        end = closing(body, head.end() - 1)
        found += [part for part in body[head.end() : end].split(";") if COMPARED.search(part) or head[0][0] != "f"]
        rest += body[done : head.start()] + ";"
        done = max(done, end)
    found += [part for part in re.split(r"[;{}?,]|(?<![=!<>])=(?!=)", rest + body[done:]) if COMPARED.search(part)]
    return [atom for part in found for atom in JOINED.split(part)]


def _explain_change(text: Text, function: Function, name: str, value: str, given: Set[int]) -> tuple[str, list[int]]:
    """Return what follows where a variable is not changed; empty where the function changes it, or where each access
    adds what was added to the pointer. The lines are those of accesses that add part of it.
    """
    if re.search(CHANGES.replace("NAME", name), text.body(function)):
        return "", []
    uses = [
        (set(NAME.findall(match[1] or match[2])), text.line(match.start()))
        for match in text.find(rf"(?<![\w.]){name}\b(?:\s*\[((?:[^\[\];]|\[[^\[\];]*\])*)\]|([^;]*))", function)
    ]
    added = set(NAME.findall(value)) - {name, *TYPES}
    if not uses or all(added and added <= names for names, _ in uses):
        return "", []
    kind = next((kind for kind, parameter in function.parameters if parameter == name), "")
    if "*" not in kind:
        return f"Put it back: without it, `{name}` stays as it is.", []
    stays = f"`{name}` still points to its first element"
    indices = added - set(function.names)  # the parameters are sizes, which other dimensions have as factors as well
    own = sorted({line for names, line in uses if names & indices and line not in given})
    if own:
        the = f"the index in {join_lines(own)} does" if len(own) == 1 else f"the indices in {join_lines(own)} do"
        index = f"and {the} not add `{value.strip()}`"
        return f"Without it, {stays}, {index}. Put it back and index from there, or add that in the index.", own
    return f"Put it back: without it, {stays}.", []
