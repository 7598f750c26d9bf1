"""Run kernels with every check on and describe the findings."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from simt.runtime import library
from simt.toolchain.lines import choose_place, ends_struct, find_indexed_array, find_source_lines, is_in_one_function

# All checks, causes before their consequences: the first finding is the one to fix first.
CHECKS = (
    *(
        "launch_error",
        "unchecked_error",
        "int_overflow",
        "barrier_divergence",
        "warp_divergence",
        "misaligned",
        "out_of_bounds",
    ),
    *(
        "illegal_address",
        "stack_overflow",
        "race",
        "uninitialized",
        "schedule",
        "leak",
        "division_by_zero",
        "device_assert",
        "kernel_timeout",
    ),
)


@dataclass(frozen=True)
class Finding:
    """One defect at one place, however often it occurred.

    check: one of CHECKS; severity: "error", or "warning" for code that works and is still bad style. message: what is
    wrong and what to do, in whole sentences. kernel: its name; source, line: the label of the student's source and the
    line in it (0: unknown). block, thread: (x, y, z) of the first thread that shows the defect, or None if it belongs
    to no single thread. other_block, other_thread, other_line: the other access of a race. array: the kernel's
    parameter or the variable; index: in elements of the array. count: the number of occurrences.
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
    first: int = field(default=0, repr=False)  # moment of the first occurrence: causes come before consequences

    def __str__(self) -> str:
        place = f"{self.source}, line {self.line}" if self.line else self.source
        where = ", ".join(part for part in (place, f"kernel {self.kernel}" if self.kernel else "") if part)
        # How often blocks race depends on the order in which they happened to run.
        often = f" ({self.count:,} times)" if self.count > 1 and self.other_block in (None, self.block) else ""
        warning = " (warning)" if self.severity == "warning" else ""
        return f"{self.check}{warning}: {where + ': ' if where else ''}{self.message}{often}"


@dataclass
class Report:
    """The findings of one `with simt.check()` block, complete when the block has ended."""

    findings: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        """The findings that are not warnings."""
        return [f for f in self.findings if f.severity == "error"]

    def text(self) -> str:
        """Return the findings as text, the one to fix first at the top."""
        return "\n".join(map(str, self.findings)) or "No check found anything."

    def as_dict(self) -> dict:
        """Return the findings for JSON."""
        return {"findings": [dataclasses.asdict(f) for f in self.findings]}


@contextlib.contextmanager
def check(**options) -> Iterator[Report]:
    """Build and run the kernels that are called in the with-block with every check on.

    options: as for simt.run (schedule, seconds, device). Kernels run about five to eight times slower. The report holds
    the findings when the block ends. A defect that stops a kernel (a barrier that some threads never reach, a fault)
    raises KernelError as usual and is in the report as well.
    """
    from simt.runtime import extension  # which imports torch

    extension.load_binder()
    with checked(**options) as report:
        yield report


@contextlib.contextmanager
def checked(**options) -> Iterator[Report]:
    """Do the same as check() without torch, for the kernels of programs."""
    report = Report()
    library.take_findings()
    began = library.now()
    try:
        with library.run(mode="check", **options):
            yield report
    finally:
        report.findings = collect(began)


def collect(began: int) -> list[Finding]:
    """Return what the runtime has found since the moment `began`, the finding to fix first at the beginning."""
    return describe(library.take_findings(), library.leaks(began))


def describe(raw: list[dict], leaks: Sequence[tuple[int, library.Place | None]] = ()) -> list[Finding]:
    """Return the findings that the runtime has taken down, the one to fix first at the beginning."""
    raw = _drop_later_reads(raw)
    places = [p for r in raw for p in [*r["places"], *([r["other"][3]] if r["other"] and r["other"][3] else [])]]
    lines = find_source_lines(places + [place for _, place in leaks if place])
    found = [f for r in raw if (f := _make_finding(r, lines))]
    for size, place in leaks:
        source, line = (place and lines.get(place)) or ("", 0)
        found.append(
            Finding(
                "leak",
                "error",
                f"{size:,} bytes of device memory are allocated here and never freed. Free them with `cudaFree`.",
                source=source,
                line=line,
            )
        )
    return _put_in_order(_remove_echoes(_merge(found)))


def _drop_later_reads(raw: list[dict]) -> list[dict]:
    """Drop all reads of a local variable without a value but the first: what is computed from it looks the same.

    Warnings stay, and hide no error.
    """
    first: dict[tuple, dict] = {}
    later = set()
    for each in sorted(raw, key=lambda r: r["first"]):
        is_local = each["check"] == "uninitialized" and each["space"] == "local" and each["array"]
        if is_local and not each["warning"] and first.setdefault((each["kernel"], each["array"]), each) is not each:
            later.add(id(each))
    return [each for each in raw if id(each) not in later]


def describe_raw(raw: dict) -> Finding | None:
    """Return a finding as the runtime reports it (struct Finding in simt/src) in words, without its line."""
    return _make_finding({**raw, "places": []}, {})


def _make_finding(raw: dict, lines: dict) -> Finding | None:
    # The compiler knows file and line of these, except in a header.
    by_compiler = raw["line"] and (raw["check"] == "int_overflow" or raw["what"] == "index")
    places = [] if by_compiler else [lines.get(p) for p in raw["places"]]
    source, line = choose_place(places, raw["file"], raw["line"])
    if not line and raw.get("launched"):  # in the code of a library function
        source, line = raw["file"], raw["launched"]
    if not line and raw["check"] == "illegal_address" and raw["message"] in ("host", "nowhere", "variable"):
        return None  # an access by simt's own headers
    common: dict[str, Any] = {
        "check": raw["check"],
        "severity": "warning" if raw["warning"] else "error",
        "kernel": raw["kernel"],
        "source": source,
        "line": line,
        "block": None if _is_library(raw) else raw["block"],
        "thread": None if _is_library(raw) else raw["thread"],
        "count": raw["count"],
        "first": raw["first"],
    }
    describe = _DESCRIPTIONS.get(raw["check"])
    if describe is None or (raw["message"] and raw["check"] not in ("out_of_bounds", "illegal_address")):
        return Finding(message=raw["message"], **common)
    if raw["message"].count(" ") > 4:  # the runtime has already described the fault in a sentence
        return Finding(message=raw["message"], **common)
    if raw["what"] == "index" and raw["places"]:
        module = raw["places"][0][0]
        raw = {**raw, "array": find_indexed_array(module, source, line, raw["column"])}
        # A struct that ends with `float values[1]` is a common form of one whose array has as many elements as its
        # memory holds. Accesses outside that memory are findings of their own.
        if _ONE_ELEMENT.match(raw["type"]) and raw["index"] > 0 and ends_struct(module, raw["array"]):
            return None
    if raw["other"]:
        what, block, thread, place = raw["other"]
        _, other_line = (place and lines.get(place)) or ("", 0)
        raw = {**raw, "other_line": other_line, "in_loop": _lie_around_barrier(raw, source, line, other_line)}
        # The finding is about the read, with the write as its other access: the read is where the wrong value shows.
        if (raw["what"] != "read" and what == "read") or (
            what != _UNDER_WAY
            and (raw["what"] == what and (line, raw["block"], raw["thread"]) < (other_line, block, thread))
        ):
            raw = {
                **raw,
                "what": what,
                "other": (raw["what"], raw["block"], raw["thread"], None),
                "block": block,
                "thread": thread,
                "other_line": line,
            }
            common.update(line=other_line, block=block, thread=thread)
            what, block, thread, other_line = raw["other"][0], raw["other"][1], raw["other"][2], line
        common.update(other_block=block, other_thread=thread, other_line=other_line)
        raw = {**raw, "line": common["line"]}
    return Finding(
        message=describe(raw),
        array=raw["array"],
        index=raw["index"] if raw["elements"] or raw["what"] == "index" else None,
        **common,
    )


# ---- messages ----

_VERB = {
    "read": "reads",
    "write": "writes",
    "atomic": "updates atomically",
    "index": "indexes",
    "copy": "fills with an asynchronous copy",
}
_NOUN = {"read": "read", "write": "write", "atomic": "update", "copy": "copy"}
_UNDER_WAY = "copy under way"
_INDEXES = "uses index"
_ONE_ELEMENT = re.compile(r"[^\[]*\[[01]\]")  # the type of an array with at most one element
_GUARD = "Check the index before the access."
_SAME_WARP = " Being in one warp does not order them."
_AWAIT = "Wait for the copy, then call `__syncthreads()`."


def _name_thread(raw: dict) -> str:
    return "The call" if _is_library(raw) else f"Thread {raw['thread']} of block {raw['block']}"


def _is_library(raw: dict) -> bool:
    """Return whether the kernel is a device-wide function of cub or thrust (simt/include/simt/device_call.h)."""
    return raw["kernel"].startswith(("cub::", "thrust::"))


def _advise_bounds(raw: dict) -> str:
    return "Check the number of items and the size of the array." if _is_library(raw) else _GUARD


def _name_array(raw: dict) -> str:
    if raw["array"]:
        return f"`{raw['array']}`"
    unnamed = {
        "shared": "the dynamic shared memory",
        "local": "a local variable",
        "heap": "memory that a kernel allocated with `new` or `malloc`",
        "texture": "the memory of a texture or surface",
    }
    return unnamed.get(raw["space"], "a tensor that is not an argument of this kernel")


def _name_element(raw: dict) -> str:
    if raw["space"] == "local":
        return _name_array(raw) if raw["elements"] <= 1 else f"element {raw['index']} of {_name_array(raw)}"
    unit = "byte" if raw["element"] == 1 and not raw["array"] else "element"
    return f"{unit} {raw['index']} of {_name_array(raw)}"


def _count_elements(raw: dict) -> str:
    return f"{raw['elements']} element{'' if raw['elements'] == 1 else 's'}"


def _describe_out_of_bounds(raw: dict) -> str:
    who = _name_thread(raw)
    if raw["what"] == "index":
        kind = raw["type"].strip("'")
        array = f"{_name_array(raw)}, which has the type {kind}" if raw["array"] else f"an array of type {kind}"
        extent = re.search(r"\[(\d+)\]", kind)  # the first one: the type is that of the dimension that is indexed
        valid = f" Valid indices are 0 to {int(extent[1]) - 1}." if extent else ""
        return f"{who} {_INDEXES} {raw['index']} of {array}.{valid}"
    if raw["message"] == "no dynamic shared memory":
        return (
            f"{who} {_VERB[raw['what']]} dynamic shared memory, but the launch allocates none. Pass its size in bytes "
            "as the third `<<<>>>` argument."
        )
    where = f"{who} {_VERB[raw['what']]} {_name_element(raw)}, which has {_count_elements(raw)}"
    if raw["message"] == "across":
        return f"{where}: the access starts inside the array and ends past its end. {_advise_bounds(raw)}"
    if raw["index"] < 0:
        return f"{where}: before its start. {_advise_bounds(raw)}"
    past = raw["index"] - raw["elements"] + 1
    return f"{where}: {past} element{'' if past == 1 else 's'} past its end. {_advise_bounds(raw)}"


def _describe_illegal_address(raw: dict) -> str:
    who, verb = _name_thread(raw), _VERB[raw["what"]]
    if raw["message"] == "null":
        return f"{who} {verb} through a null pointer. Set the pointer before it is used."
    if raw["message"] == "freed":
        return f"{who} {verb} memory that was already freed. Free it after its last use."
    if raw["message"] == "nowhere":
        address = raw["index"] % 2**64
        return (
            f"{who} {verb} at {address:#x}, which is not a valid address. Check the index and the pointer: the index "
            "is far out of range or overflowed, or the pointer was never set."
        )
    if raw["message"] == "constant":
        return (
            f"{who} {verb} {_name_element(raw)}, a variable in constant memory, which kernels can only read. Write it "
            "on the host with `cudaMemcpyToSymbol`, or declare it `__device__`."
        )
    if raw["message"] == "variable":
        return (
            f"{who} {verb} {_name_array(raw)}, a variable of the host, which a GPU cannot reach. Pass its value or a "
            "pointer to device memory to the kernel, or declare it `__device__`."
        )
    if raw["array"]:
        return (
            f"{who} {verb} through {_name_array(raw)}, which points to host memory. A GPU cannot reach it: pass a "
            "pointer to device memory, and copy the data there with `cudaMemcpy`."
        )
    return (
        f"{who} {verb} host memory, or an address at which nothing is allocated. A GPU cannot reach it: pass a pointer "
        "to device memory."
    )


def _describe_misaligned(raw: dict) -> str:
    width, first, size = raw["type"], raw["index"] * raw["element"], raw["elements"] * raw["element"]
    return (
        f"{_name_thread(raw)} {_VERB[raw['what']]} {width} bytes at once of {_name_array(raw)}, at an address that is "
        f"not a multiple of {width}. A GPU stops at this access. It begins at byte {first} of {size}, {raw['column']} "
        f"bytes past a multiple of {width}. Align it, or access one element at a time."
    )


def _describe_uninitialized(raw: dict) -> str:
    who = _name_thread(raw)
    if raw["what"] == "result":
        return (
            f"{who} comes to the end of the function `{raw['type']}`, which has no `return` there, so that its result "
            "is undefined. Return a value on every path."
        )
    verb, noun = ("updates", "update") if raw["what"] == "atomic" else ("reads", "read")
    remedy = (
        "The other bytes of this access were written: this is harmless if the missing ones are padding in a struct."
        if raw["warning"]
        else f"Initialize it before the {noun}."
    )
    return f"{who} {verb} {_name_element(raw)}, which was never written. {remedy}"


def _describe_race(raw: dict) -> str:
    what, block, thread, _ = raw["other"]
    other_place = f" in line {raw['other_line']}" if raw["other_line"] else ""
    same_block = block == raw["block"]
    other = f"thread {thread}" + (" of the same block" if same_block else f" of block {block}")
    other = "it" if same_block and thread == raw["thread"] else other
    verb = _VERB[what.removesuffix(" under way")]
    line = f"{_name_thread(raw)} {_VERB[raw['what']]} {_name_element(raw)}, which {other} {verb}{other_place}"
    if what == _UNDER_WAY:
        return f"{line}. The copy may still write, since no thread has waited for it. {_AWAIT}"
    if raw["warning"]:
        return (
            f"{line}. Nothing orders the two writes, which is harmless only because both write the same value. Let one "
            "thread write it."
        )
    if not same_block:
        remedy = "Use an atomic operation, give each block its own element, or launch a second kernel."
        if raw["what"] == "read" or what == "read":
            remedy = "Read it in a second kernel, or publish it with `__threadfence()` and then an atomic operation."
        return f"{line}. Blocks run in any order. {remedy}"
    if raw.get("in_loop"):
        remedy = _order_passes((raw["line"], raw["what"]), (raw["other_line"], what))
        if _are_in_one_warp(raw["thread"], thread):
            remedy += _SAME_WARP
    elif "atomic" in (raw["what"], what):
        remedy = "Only one of the two is atomic. Make both atomic, or put a `__syncthreads()` between the two."
    else:
        is_one_line = 0 < raw["line"] == raw["other_line"]
        remedy = _order_accesses(raw["what"], what, is_one_line)
        if _are_in_one_warp(raw["thread"], thread) and not (is_one_line and raw["what"] == what):
            remedy += _SAME_WARP
    return f"{line} without a barrier in between. {remedy}"


def _order_passes(*accesses: tuple[int, str]) -> str:
    """Return the advice for two accesses (line, what), of which the one in the upper line follows in the next pass."""
    (upper, later), (lower, earlier) = sorted((line, _NOUN[what.removesuffix(" under way")]) for line, what in accesses)
    if earlier == later:
        earlier, later = f"{earlier} in line {lower}", f"one in line {upper}"
    return f"Put a `__syncthreads()` between the {earlier} in one pass of the loop and the {later} in the next."


def _lie_around_barrier(raw: dict, source: str, line: int, other_line: int) -> bool:
    """Return whether the last barrier before both accesses of a race lies between their lines.

    The access in the upper line then belongs to the next pass of a loop.
    """
    first, last = sorted((line, other_line))
    return (
        0 < first < raw.get("barrier", 0) < last
        and bool(raw["places"])
        and is_in_one_function(raw["places"][0][0], source, first, last)
    )


def _order_accesses(one: str, other: str, is_one_line: bool) -> str:
    """Return the advice for two accesses of one block, of which at least one writes."""
    if not is_one_line:
        return "Put a `__syncthreads()` between the two."
    if one == other:
        return (
            "Give each thread an element of its own. If the line is in a loop and each pass writes other elements, put "
            "a `__syncthreads()` between one pass and the next."
        )
    return (
        "Both are in this line: if it is in a loop, end the loop's body with a `__syncthreads()`, outside of any `if`; "
        "else keep what is read in a variable, and put the barrier before the write."
    )


def _are_in_one_warp(a: tuple, b: tuple) -> bool:
    return a[1:] == b[1:] and a[0] // 32 == b[0] // 32


def _describe_int_overflow(raw: dict) -> str:
    kind = raw["type"].strip("'")
    if _is_library(raw):
        what = f"The {raw['what']} in this call overflows its type, `{kind}`, and the result is undefined."
        return f"{what} Pass an initial value, an operator or items of a wider type."
    return (
        f"{_name_thread(raw)}: this {raw['what']} overflows its type, `{kind}`, and the result is undefined. Compute "
        "it in `size_t` or `long long`."
    )


_DESCRIPTIONS = {
    "out_of_bounds": _describe_out_of_bounds,
    "illegal_address": _describe_illegal_address,
    "misaligned": _describe_misaligned,
    "uninitialized": _describe_uninitialized,
    "race": _describe_race,
    "int_overflow": _describe_int_overflow,
}


# ---- order ----


def _merge(found: list[Finding]) -> list[Finding]:
    """Keep one finding per check and pair of lines: an unrolled loop is one source line at many addresses."""
    kept: dict[tuple, Finding] = {}
    for f in found:
        key = (
            f.check,
            f.kernel,
            f.source,
            f.line,
            f.other_line,
            f.array if f.check == "race" else "",
            f.message if not f.line else "",
        )
        if key in kept:
            first, second = sorted((kept[key], f), key=_rank_moment)
            severity = "error" if "error" in (first.severity, second.severity) else "warning"
            if first.severity != severity:
                first, second = second, first
            kept[key] = dataclasses.replace(
                first, count=first.count + second.count, severity=severity, first=min(first.first, second.first)
            )
        else:
            kept[key] = f
    return list(kept.values())


def _rank_moment(f: Finding) -> tuple:
    return (f.severity != "error", (f.block or (0, 0, 0))[::-1], (f.thread or (0, 0, 0))[::-1], not f.array, f.message)


def _remove_echoes(found: list[Finding]) -> list[Finding]:
    """Remove findings that repeat another one: an uninitialised read that is also a race, or a fault at an access that
    is already reported.
    """
    races: dict[tuple, list[int]] = {}  # by place and array: the races of this list
    for i, f in enumerate(found):
        if f.check == "race":
            for line in {f.line, f.other_line}:
                races.setdefault((f.source, line, f.array), []).append(i)
    began = [f.first for f in found]
    odd = {
        f.kernel: f.first
        for f in sorted(found, key=lambda f: -f.first)
        if f.check == "warp_divergence" and f.severity == "warning"
    }
    dropped = {(f.source, f.line) for f in found if f.check == "unchecked_error"}
    outside = {(f.source, f.line) for f in found if f.check == "out_of_bounds" and f.array}
    kept = []
    for i, f in enumerate(found):
        echoed = races.get((f.source, f.line, f.array), []) if f.check == "uninitialized" else []
        for k in echoed:  # the race is found when the element is written, after this read
            began[k] = min(began[k], f.first)
        echo = bool(echoed) or (
            f.check == "out_of_bounds" and not f.array and (f.source, f.line) in outside and _INDEXES not in f.message
        )
        # a shuffle gave this lane an undefined value, which it does not use
        echo = echo or (f.check == "int_overflow" and odd.get(f.kernel, f.first) < f.first)
        echo = echo or (
            not f.kernel and f.check in ("out_of_bounds", "illegal_address") and (f.source, f.line) in dropped
        )
        if not echo:
            kept.append(i)
    return [dataclasses.replace(found[i], first=began[i]) for i in kept]


# A finding is a consequence if one of these preceded it: a wrong value was read, and it leads to a wrong address, index
# or condition.
_WRONG_VALUES = ("race", "uninitialized", "warp_divergence")
_CAUSES = {
    "int_overflow": (*_WRONG_VALUES, "out_of_bounds"),
    **dict.fromkeys(("misaligned", "out_of_bounds", "illegal_address", "stack_overflow"), _WRONG_VALUES),
}


def _put_in_order(found: list[Finding]) -> list[Finding]:
    """Sort findings by CHECKS, but those that are consequences after all others, as they occurred."""
    rank = {name: i for i, name in enumerate(CHECKS)}
    errors = [f for f in found if f.severity == "error"]

    def is_consequence(f: Finding) -> bool:
        """Return whether an error may be its cause: one before it, and for a bad access also in a line before."""
        return any(
            c.check in _CAUSES.get(f.check, ())
            and c.first < f.first
            and (f.check == "int_overflow" or (c.source == f.source and c.line <= f.line))
            for c in errors
        )

    def place(f: Finding) -> tuple:
        late = is_consequence(f)
        return (
            f.severity != "error",
            late,
            f.first if late else rank.get(f.check, len(rank)),
            f.source,
            f.line,
            f.other_line,
        )

    return sorted(found, key=place)
