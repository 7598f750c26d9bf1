"""Establish facts of a command from the report of simt's runtime. What the worker says of them is a claim.

The submission's Python can change the code that makes the claims. It cannot change the report, which the runtime's C++
writes to memory that no code in Python reaches.
"""

from __future__ import annotations

import collections
import contextlib

import msgspec

from grader.judging.trial import Finding, FindingError, Kind
from grader.source import contract
from grader.source.contract import Source
from grader.verdict import EXPLANATIONS, Evidence, Reason
from grader.worker import protocol
from grader.worker.failures import NAME, shorten
from grader.worker.messages import MAX_LAUNCHES, MAX_TEXT
from simt.checking import findings as checks
from simt.runtime.monitor import Finding as Defect
from simt.runtime.monitor import Report, Write


def confirm_launches(claimed: list[list[protocol.Launch]], report: Report, case: str) -> None:
    """Raise FindingError where the worker claims launches that the runtime has not made."""
    count = collections.Counter((one.kernel, one.grid, one.block) for run in claimed for one in run)
    made = {(protocol_name(kernel), grid, block): n for (kernel, grid, block), n in report.kinds.items()}
    for launch, times in count.items():
        if times > made.get(launch, 0) and not report.more:
            kernel = launch[0][:80]
            raise FindingError(_contradict(f"its process reports a launch of `{kernel}` that did not happen", case))


def list_launches(claimed: list[protocol.Launch], report: Report) -> list[protocol.Launch]:
    """Return the launches of one run: those claimed, which are confirmed, or where none are, the command's."""
    if not report.launches:
        return []
    return claimed or [
        protocol.Launch(protocol_name(kernel), grid, block) for kernel, grid, block in list(report.kinds)[:MAX_LAUNCHES]
    ]


def protocol_name(kernel: str) -> str:
    """Return a kernel's name as messages carry it."""
    return shorten(kernel, NAME)


def confirm_checks(report: Report, case: str) -> None:
    """Raise FindingError where functions ran without the checks that were ordered."""
    if report.checked < report.launches:
        unchecked = report.launches - report.checked
        raise FindingError(_contradict(f"{unchecked} launches ran without simt's checks, which were ordered", case))
    if report.unprobed:
        raise FindingError(_contradict("its kernels were built so that the checks do not see what they do", case))


def find_missing(expected: set[Kind], launched: set[Kind]) -> str:
    """Return the first kernel of the expected launches that was not launched in the same way; empty if all were."""
    return min((kernel for kernel, _, _ in expected - launched), default="")


def contradict_launches(kernel: str, doing: str, case: str) -> FindingError:
    """Return the error of a kernel that an ordinary call launches and a call of another kind does not."""
    name = protocol_name(kernel)
    return FindingError(_contradict(f"the kernel `{name}` is launched in an ordinary call and not {doing}", case))


def find_defects(claimed: list[protocol.Found], report: Report, case: str) -> list[protocol.Found]:
    """Return what the checks found, as the runtime reports it, with the lines and words that the worker claims.

    Raises FindingError where the runtime counted errors of which neither its list nor the worker says anything.
    """
    errors = [one for one in report.findings if not one.warning]
    reported = {(one.check, protocol_name(one.kernel)) for one in errors} | ({("leak", "")} if report.leaks else set())
    kept = [one for one in claimed if (one.check, one.kernel) in reported]
    if kept or (claimed and not errors):
        return kept or claimed
    if report.errors and not errors:
        message = f"simt's checks found {report.errors} errors, and its process reports none"
        raise FindingError(_contradict(message, case))
    # Python's part drops what its headers cause, and what only follows from something else (simt/checking/findings.py).
    return [_describe(one) for one in errors if not _is_left_out(one, report.findings)]


def _is_left_out(one: Defect, every: list[Defect]) -> bool:
    if one.check == "illegal_address":
        return one.message in ("host", "nowhere")
    odd = [
        each.first for each in every if each.warning and (each.check, each.kernel) == ("warp_divergence", one.kernel)
    ]
    return one.check == "int_overflow" and bool(odd) and min(odd) < one.first


def _describe(one: Defect) -> protocol.Found:
    """Return a finding in the judge's own words, without its line, which only the worker can look up."""
    found = None
    with contextlib.suppress(Exception):  # of values that the runtime never writes
        found = checks.describe_raw(msgspec.structs.asdict(one))
    message = found.message if found is not None else f"The check {one.check} failed."
    return protocol.Found(
        protocol_name(one.check), message[:MAX_TEXT], protocol_name(one.kernel), "cuda_sources", 0,
        list(one.block) if one.block else None, list(one.thread) if one.thread else None,
    )  # fmt: skip


def describe_write(write: Write, written: list[protocol.Written], source: Source, sources: list[dict]) -> Evidence:
    """Return the evidence of a write to an input. written: the lines that the worker claims."""
    line = next((one for one in written if one.offset == write.offset and one.line), None)
    text = next((strings[line.source] for strings in sources if line and line.source in strings), "")
    at = contract.locate(source, text, line.line) if line and text else None
    if not write.kernel:
        return Evidence()
    return Evidence(
        kernel=protocol_name(write.kernel), block=list(write.block or ()) or None,
        thread=list(write.thread or ()) or None, line=at, source_line=line.line if line else None,
        text=source.line(at) or None if at else None,
    )  # fmt: skip


def _contradict(what: str, case: str) -> Finding:
    message = f"{EXPLANATIONS[Reason.false_report]} Here {what}."
    return Finding(Reason.false_report, message, [Evidence(case=case)], fatal=True)
