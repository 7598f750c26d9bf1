"""Runs kernels with every check on and puts what was found into words."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import runtime
from .lines import indexed_array, source_lines

# What is looked for, the causes before what follows from them: the first finding is the one to mend first.
CHECKS = (
    *("launch_error", "unchecked_error", "int_overflow", "barrier_divergence", "warp_divergence", "misaligned", "out_of_bounds"),
    *("illegal_address", "stack_overflow", "race", "uninitialized", "schedule", "leak", "division_by_zero", "device_assert", "kernel_timeout"),
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong at one place, however often it happened.

    check: one of CHECKS; severity: "error", or "warning" for what works and is still no good habit.
    message: what is wrong, in whole sentences. kernel: its name; source, line: the label of the student's source and the
    line in it (0: unknown). block, thread: (x, y, z) of the first thread concerned, None where no single one is.
    other_block, other_thread, other_line: the other access of a race. array: the kernel's parameter or the variable;
    index: in elements of it. count: how often it was seen.
    """

    check: str
    severity: str
    message: str
    kernel: str = ""
    source: str = ""
    line: int = 0
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    other_block: tuple[int, int, int] | None = None
    other_thread: tuple[int, int, int] | None = None
    other_line: int = 0
    array: str = ""
    index: int | None = None
    count: int = 1
    first: int = field(default=0, repr=False)  # when it was seen first, to order causes and what follows from them

    def __str__(self) -> str:
        place = f"{self.source}, line {self.line}" if self.line else self.source
        where = ", ".join(part for part in (place, f"kernel {self.kernel}" if self.kernel else "") if part)
        often = f" ({self.count:,} times)" if self.count > 1 else ""
        return f"{self.check}{' (warning)' if self.severity == 'warning' else ''}: {where + ': ' if where else ''}{self.message}{often}"


@dataclass
class Report:
    """What the checks of one `with simt.check()` found; complete when the with-statement has ended."""

    findings: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        """The findings that are no mere warnings."""
        return [f for f in self.findings if f.severity == "error"]

    def text(self) -> str:
        """The findings, the one to mend first at the top."""
        return "\n".join(map(str, self.findings)) or "No check found anything."

    def as_dict(self) -> dict:
        """For JSON."""
        return {"findings": [dataclasses.asdict(f) for f in self.findings]}


@contextlib.contextmanager
def check(**options) -> Iterator[Report]:
    """Builds and runs the kernels that are called inside with every check on.

    options: as of simt.run (schedule, seconds, device). Kernels run some five to eight times slower. What was found
    stands in the report when the with-statement ends; only what stops a kernel (a barrier that not all reach, a fault)
    raises KernelError as ever, and is in the report as well.
    """
    from . import extension  # which imports torch

    extension.binder()
    with checked(**options) as report:
        yield report


@contextlib.contextmanager
def checked(**options) -> Iterator[Report]:
    """check(), for kernels that know no torch: those of programs."""
    report = Report()
    runtime.take_findings()
    began = runtime.now()
    try:
        with runtime.run(mode="check", **options):
            yield report
    finally:
        report.findings = collect(began)


def collect(began: int) -> list[Finding]:
    """What the runtime has found since the moment `began`, in order."""
    raw, leaks = runtime.take_findings(), runtime.leaks(began)
    places = [p for r in raw for p in [*r["places"], *([r["other"][3]] if r["other"] and r["other"][3] else [])]]
    lines = source_lines(places + [place for _, place in leaks if place])
    found = [f for r in raw if (f := _finding(r, lines))]
    for size, place in leaks:
        source, line = lines.get(place) or ("", 0)
        found.append(Finding("leak", "error", f"{size:,} bytes of device memory were allocated here and never freed: cudaFree is missing.", source=source, line=line))
    return _in_order(_without_echoes(_merged(found)))


def _finding(raw: dict, lines: dict) -> Finding | None:
    if raw["line"]:
        source, line = raw["file"], raw["line"]
    else:
        source, line = next((lines[p] for p in raw["places"] if lines.get(p)), (raw["file"], 0))
        if not line and raw["check"] == "illegal_address" and raw["message"] in ("host", "nowhere"):
            return None  # simt's own headers
    common = dict(
        check=raw["check"], severity="warning" if raw["warning"] else "error", kernel=raw["kernel"], source=source, line=line,
        block=raw["block"], thread=raw["thread"], count=raw["count"], first=raw["first"],
    )
    write = _WORDS.get(raw["check"])
    if write is None or (raw["message"] and raw["check"] not in ("out_of_bounds", "illegal_address")):
        return Finding(message=raw["message"], **common)
    if raw["message"].count(" ") > 4:  # a fault's own sentence
        return Finding(message=raw["message"], **common)
    if raw["what"] == "index" and raw["places"]:
        raw = {**raw, "array": indexed_array(raw["places"][0][0], source, line, raw["column"])}
    if raw["other"]:
        what, block, thread, place = raw["other"]
        _, other_line = (place and lines.get(place)) or ("", 0)
        raw = {**raw, "other_line": other_line}
        # Of a read and a write the read is told first: that is where the wrong value shows.
        if raw["what"] != "read" and what == "read" or what != _UNDER_WAY and (raw["what"] == what and (line, raw["block"], raw["thread"]) < (other_line, block, thread)):
            raw = {**raw, "what": what, "other": (raw["what"], raw["block"], raw["thread"], None), "block": block, "thread": thread, "other_line": line}
            common.update(line=other_line, block=block, thread=thread)
            what, block, thread, other_line = raw["other"][0], raw["other"][1], raw["other"][2], line
        common.update(other_block=block, other_thread=thread, other_line=other_line)
    return Finding(message=write(raw), array=raw["array"], index=raw["index"] if raw["elements"] or raw["what"] == "index" else None, **common)


# ---- words ----

_VERB = {"read": "reads", "write": "writes", "atomic": "updates atomically", "index": "indexes", "copy": "fills by an asynchronous copy"}
_UNDER_WAY = "copy under way"
_DONE = {"read": "read", "write": "written", "atomic": "updated atomically"}


def _who(raw: dict) -> str:
    return f"thread {raw['thread']} of block {raw['block']}"


def _array(raw: dict) -> str:
    if raw["array"]:
        return f"`{raw['array']}`"
    return {"shared": "the dynamic shared memory", "local": "a local variable"}.get(raw["space"], "a tensor that is no argument of this kernel")


def _element(raw: dict) -> str:
    if raw["space"] == "local":
        return _array(raw) if raw["elements"] <= 1 else f"element {raw['index']} of {_array(raw)}"
    unit = "byte" if raw["element"] == 1 and not raw["array"] else "element"
    return f"{unit} {raw['index']} of {_array(raw)}"


def _size(raw: dict) -> str:
    return f"{raw['elements']} element{'' if raw['elements'] == 1 else 's'}"


def _out_of_bounds(raw: dict) -> str:
    who = _who(raw)[:1].upper() + _who(raw)[1:]
    if raw["what"] == "index":
        named = f"{_array(raw)}, " if raw["array"] else ""
        return f"{who} uses the index {raw['index']} in {named}an array of type {raw['type'].strip(chr(39))}."
    if raw["message"] == "no dynamic shared memory":
        return f"{who} {_VERB[raw['what']]} dynamic shared memory, but the launch gives none: see the launch's third <<<>>> argument."
    where = f"{who} {_VERB[raw['what']]} {_element(raw)}, which has {_size(raw)}"
    if raw["message"] == "across":
        return f"{where}: the access begins inside and ends past its end."
    if raw["index"] < 0:
        return f"{where}: before its start."
    past = raw["index"] - raw["elements"] + 1
    return f"{where}: {past} element{'' if past == 1 else 's'} past its end."


def _illegal_address(raw: dict) -> str:
    who, verb = _who(raw)[:1].upper() + _who(raw)[1:], _VERB[raw["what"]]
    if raw["message"] == "null":
        return f"{who} {verb} through a null pointer."
    if raw["message"] == "freed":
        return f"{who} {verb} memory that was freed."
    if raw["message"] == "nowhere":
        address = raw["index"] % 2**64
        return f"{who} {verb} at the address {address:#x}, which no memory can have: an index is far out of range or overflowed, or the pointer was never set."
    return f"{who} {verb} memory of the host, or an address that belongs to nothing: a GPU can't reach it."


def _misaligned(raw: dict) -> str:
    return (
        f"{_who(raw)[:1].upper() + _who(raw)[1:]} {_VERB[raw['what']]} {raw['type']} bytes at once of {_array(raw)}, at an address that is not a "
        f"multiple of {raw['type']}: a GPU stops there. It begins at byte {raw['index'] * raw['element']} of {raw['elements'] * raw['element']}, "
        f"{raw['column']} past a multiple of {raw['type']}."
    )


def _uninitialized(raw: dict) -> str:
    who = _who(raw)[:1].upper() + _who(raw)[1:]
    verb = "updates" if raw["what"] == "atomic" else "reads"
    part = " The rest of what it reads at once was written: harmless if this is padding of a struct." if raw["warning"] else ""
    return f"{who} {verb} {_element(raw)}, which nothing has written.{part}"


def _race(raw: dict) -> str:
    what, block, thread, _ = raw["other"]
    other_place = f" in line {raw['other_line']}" if raw["other_line"] else ""
    same_block = block == raw["block"]
    other = f"thread {thread}" + (" of the same block" if same_block else f" of block {block}")
    other = "it" if same_block and thread == raw["thread"] else other
    line = f"{_who(raw)[:1].upper() + _who(raw)[1:]} {_VERB[raw['what']]} {_element(raw)}, which {other} {_VERB[what.removesuffix(' under way')]}{other_place}"
    if what == _UNDER_WAY:
        return f"{line}: nobody has waited for that copy, which may write at any moment. Wait for it, then call __syncthreads()."
    if raw["warning"]:
        return f"{line}: nothing orders the two, which is harmless here only because both write the same value."
    if not same_block:
        mend = "blocks run in any order. Use an atomic, give each block its own element, or launch a second kernel."
        if raw["what"] == "read" or what == "read":
            mend = "blocks run in any order; only an atomic after __threadfence(), or a second kernel, makes one wait for another."
    elif "atomic" in (raw["what"], what):
        mend = "one of the two is no atomic operation, and no __syncthreads() lies between them."
    else:
        warp = _same_warp(raw["thread"], thread, raw)
        mend = "no __syncthreads() lies between the two"
        mend += ", and threads of one warp need a __syncwarp() as well: they do not run in step." if warp else "."
    return f"{line}: {mend}"


def _same_warp(a: tuple, b: tuple, raw: dict) -> bool:
    return a[1:] == b[1:] and a[0] // 32 == b[0] // 32


def _int_overflow(raw: dict) -> str:
    kind = raw["type"].strip("'")
    return (
        f"{_who(raw)[:1].upper() + _who(raw)[1:]}: this {raw['what']} overflows its type, {kind}: the result is undefined. Where it is an index, "
        "compute it in size_t or long long."
    )


_WORDS = {
    "out_of_bounds": _out_of_bounds,
    "illegal_address": _illegal_address,
    "misaligned": _misaligned,
    "uninitialized": _uninitialized,
    "race": _race,
    "int_overflow": _int_overflow,
}


# ---- order ----


def _merged(found: list[Finding]) -> list[Finding]:
    """One finding a check and pair of lines: a loop that was unrolled is many places in the code and one in the source."""
    kept: dict[tuple, Finding] = {}
    for f in found:
        key = (f.check, f.kernel, f.source, f.line, f.other_line, f.array if f.check == "race" else "", f.message if not f.line else "")
        if key in kept:
            first, second = sorted((kept[key], f), key=_moment)
            severity = "error" if "error" in (first.severity, second.severity) else "warning"
            if first.severity != severity:
                first, second = second, first
            kept[key] = dataclasses.replace(first, count=first.count + second.count, severity=severity, first=min(first.first, second.first))
        else:
            kept[key] = f
    return list(kept.values())


def _moment(f: Finding) -> tuple:
    return (f.severity != "error", (f.block or (0, 0, 0))[::-1], (f.thread or (0, 0, 0))[::-1], not f.array, f.message)


def _without_echoes(found: list[Finding]) -> list[Finding]:
    """Leaves out what only says another finding again: a value that a race left unwritten, a fault of an access that was told."""
    races = {(f.source, line, f.array) for f in found if f.check == "race" for line in (f.line, f.other_line)}
    odd = {f.kernel: f.first for f in sorted(found, key=lambda f: -f.first) if f.check == "warp_divergence" and f.severity == "warning"}
    dropped = {(f.source, f.line) for f in found if f.check == "unchecked_error"}
    outside = {(f.source, f.line) for f in found if f.check == "out_of_bounds" and f.array}
    kept = []
    for f in found:
        echo = f.check == "uninitialized" and (f.source, f.line, f.array) in races
        echo = echo or (f.check == "out_of_bounds" and not f.array and (f.source, f.line) in outside and "index" not in f.message)
        echo = echo or (f.check == "int_overflow" and odd.get(f.kernel, f.first) < f.first)  # of a value that nobody uses
        echo = echo or (not f.kernel and f.check in ("out_of_bounds", "illegal_address") and (f.source, f.line) in dropped)
        if not echo:
            kept.append(f)
    return kept


def _in_order(found: list[Finding]) -> list[Finding]:
    rank = {name: i for i, name in enumerate(CHECKS)}
    # Overflow leads to wrong addresses, but garbage that was read leads to overflow: what came first tells.
    garbage = [f.first for f in found if f.check in ("out_of_bounds", "uninitialized", "warp_divergence") and f.severity == "error"]

    def place(f: Finding) -> tuple:
        late = f.check == "int_overflow" and garbage and min(garbage) < f.first
        return (f.severity != "error", len(rank) if late else rank.get(f.check, len(rank)), f.source, f.line, f.other_line)

    return sorted(found, key=place)
