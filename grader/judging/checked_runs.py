"""Runs of a submission with simt's checks on, and with threads in reverse order, which must be like its plain runs."""

from __future__ import annotations

from grader.judging import facts, findings, tolerance
from grader.judging.session import CHECKED, IN_ORDER, REVERSED, Call, How, Session
from grader.judging.trial import Finding, FindingError, Kind, Trial
from grader.worker import protocol

# Runs are repeated so often where they launch other kernels than before: a file may try one of many in each call
# before it chooses one.
MAX_REPETITIONS = 8


def find_with_checks(session: Session, trial: Trial) -> Finding | None:
    """Construct and call the model with all of simt's checks on; return what they, or the call itself, found.

    They find accesses out of bounds, races, memory that is read before it is written, … None on a GPU.
    """
    if session.gpu:
        return None
    try:
        expected, launched = trial.kinds, set()
        for repetition in range(1 + MAX_REPETITIONS):
            calls = min(2, 1 + repetition)  # a kernel may be launched from the second call on
            if repetition:
                expected = _list_kinds(session, trial, IN_ORDER)
            found = _run_checks(session, trial, calls)
            launched |= set(session.client.report.kinds)
            missing = facts.find_missing(expected, launched)
            if found or not missing:
                return explain_check(session, found, trial)
    except FindingError as error:
        return error.finding
    return facts.contradict_launches(missing, "when simt's checks are on", trial.case.name).finding


def _run_checks(session: Session, trial: Trial, calls: int) -> list[protocol.Found]:
    """Return what the checks find. Raises FindingError where they find nothing and an output is wrong."""
    session.construct(trial, "end")
    reply = session.forward(trial, CHECKED, calls)
    if has_leak(reply.found):
        report = session.client.report
        reply.found = keep_lasting_leaks(reply.found, session.forward(trial, CHECKED, calls).found)
        session.client.report = report
    elif not reply.found:
        _compare_checked(session, trial, reply, calls)
    return reply.found


def _compare_checked(session: Session, trial: Trial, reply: protocol.Outputs, calls: int) -> None:
    """Raise FindingError where a checked call returned a wrong output, and the plain calls the expected one."""
    if len(reply.runs) != calls:
        raise FindingError(findings.of_nonsense(trial.case.name))
    for position, run in enumerate(reply.runs, -calls):
        outputs = session.collect_outputs(trial, run, position)
        difference = tolerance.compare(outputs, trial.expected, trial.eager, trial.case, trial.noise)
        if difference is not None and trial.difference is None:
            finding = findings.of_difference(difference, session.list_launches(run.launches))
            finding.evidence[0].detail = "got: in a call with simt's checks on"
            raise FindingError(finding)


def _list_kinds(session: Session, trial: Trial, how: How) -> set[Kind]:
    """Return what two plain calls of a new model launch. Raises FindingError where they return a wrong output.

    A file that caches or chooses kernels at its first call may launch others than before.
    """
    session.construct(trial, how.guard)
    for call in session.run_forward(trial, how, calls=2):
        if call.difference is not None and trial.difference is None:
            raise FindingError(findings.of_difference(call.difference, call.run.launches))
    return set(session.client.report.kinds)


def run_reversed(session: Session, trial: Trial) -> Call:
    """Call a new model with threads in reverse order. Raises FindingError where it launches other kernels."""
    expected, launched = trial.kinds, set()
    for repetition in range(1 + MAX_REPETITIONS):
        calls = min(2, 1 + repetition)
        if repetition:  # a kernel may be chosen by the address of a tensor
            expected = _list_kinds(session, trial, How(guard=REVERSED.guard))
        session.construct(trial, REVERSED.guard)
        call = session.run_forward(trial, REVERSED, calls)[0]
        launched |= set(session.client.report.kinds)
        missing = facts.find_missing(expected, launched)
        if call.difference is not None or not missing:
            return call
    raise facts.contradict_launches(missing, "when threads run in reverse order", trial.case.name)


def explain_check(session: Session, found: list[protocol.Found], trial: Trial) -> Finding | None:
    """Return the first of what the checks found, at its line of the submission."""
    return findings.of_check(found[0], session.source, session.client.sources, trial.case.name) if found else None


def has_leak(found: list[protocol.Found]) -> bool:
    """Return whether memory that a call allocated was still there when it had ended."""
    return any(one.check == "leak" for one in found)


def keep_lasting_leaks(first: list[protocol.Found], second: list[protocol.Found]) -> list[protocol.Found]:
    """Return the findings of the first of two calls of one model, less leaks that the second call does not have.

    A workspace that is allocated in the first call and used again is no leak.
    """
    again = [(one.source, one.line) for one in second if one.check == "leak"]
    return [one for one in first if one.check != "leak" or (one.source, one.line) in again]
