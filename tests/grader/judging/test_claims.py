"""Does a worker choose nothing but how its submission failed?"""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

import simt
from grader.judging import findings
from grader.judging.results import ERRORS, fail_stage
from grader.source.contract import Source
from grader.verdict import Outcome, Reason, Stage, StageName, Status
from grader.worker import claims, protocol
from grader.worker.failures import describe_exception
from grader.worker.messages import MAX_LINE, MAX_NAME, MAX_NOTES
from grader.worker.protocol import Failure, Found, Note
from simt.toolchain.cache import make_unusable_error
from tests.grader.scaffold import RIGHT, forward, problem  # noqa: F401 - a fixture
from tests.sample import sample

COMMANDS = (
    *(protocol.Build, protocol.Construct, protocol.Forward, protocol.Gradient, protocol.Prepare),
    *(protocol.Batch, protocol.Clear, protocol.Release),
)
NO_SPACE = "No space left on device"
SOURCE = Source(Path("it.py"), RIGHT, "")
# What ends as something other than a failure, or is another stage's or the judge's own.
FORBIDDEN = (
    *("interrupted", "grader_error", "no_compiler", "not_attempted", "not_reached", "no_gpu", "inconclusive"),
    *("no_kernel", "unreadable", "empty_file", "syntax_error", "bad_signature", "input_modified", "wrong_values"),
    *("build_timeout", "timeout", "crash", "passed", "", "Exception", "\0"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_reason_that_a_worker_may_give_is_a_failure(command):
    for name in claims.accepted_reasons(command):
        finding = findings.of_failure(Failure(name, "RuntimeError", "it broke"), SOURCE, [], "a case", command)
        stage = Stage(name=StageName.correct, status=Status.passed)
        fail_stage(stage, finding)
        assert finding.reason == name and stage.status is Status.failed


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("reason", FORBIDDEN)
def test_any_other_reason_becomes_the_commands_own(command, reason):
    finding = findings.of_failure(Failure(reason, "RuntimeError", "it broke"), SOURCE, [], None, command)
    generic = {protocol.Build: Reason.import_error, protocol.Construct: Reason.init_error}
    assert finding.reason is generic.get(command, Reason.exception)
    assert "it broke" in finding.message


def test_a_reason_of_one_command_is_none_of_another():
    for reason, command in (("no_model_new", protocol.Forward), ("missing_weights", protocol.Build)):
        assert findings.of_failure(Failure(reason, "", "x"), SOURCE, [], None, command).reason != reason


def test_a_missing_compiler_is_believed_where_the_judge_misses_it_too(monkeypatch):
    def fail():
        raise simt.NoCompiler("none")

    failure = Failure("no_compiler", "NoCompiler", "No C++ compiler was found.")
    assert findings.of_failure(failure, SOURCE, [], None, protocol.Build).reason is Reason.import_error
    monkeypatch.setattr("simt.toolchain.compilers.find_compiler", fail)
    assert findings.of_failure(failure, SOURCE, [], None, protocol.Build).reason in ERRORS


def test_a_build_error_of_one_sentence_is_said_once():
    """Is the evidence without a detail where the finding's sentence is the whole message, and with it else?"""
    for message, detail in (
        ("CXX is `none`. Unset it.", None),
        ("CXX is `none`.\nUnset it.", "CXX is `none`.\nUnset it."),
    ):
        finding = findings.of_failure(Failure("compile_error", "", message), SOURCE, [], None, protocol.Build)
        assert finding.message == message.splitlines()[0] and finding.evidence[0].detail == detail


def test_a_full_disk_is_believed_where_the_judge_finds_it_full_too(monkeypatch):
    failure = Failure("grader_error", "CacheError", "The folder is full.")
    assert findings.of_failure(failure, SOURCE, [], None, protocol.Forward).reason is Reason.exception
    monkeypatch.setattr("simt.toolchain.cache.free_bytes", lambda: 1000)
    assert findings.of_failure(failure, SOURCE, [], None, protocol.Forward).reason is Reason.grader_error


@pytest.mark.parametrize("why, is_own", [("Permission denied", True), ("File exists", True), (NO_SPACE, False)])
def test_a_folder_that_the_submission_broke(why, is_own):
    """Is a folder of builds that became unusable reported as the submission's doing, and not as the machine's?"""
    error = make_unusable_error(why)
    failure = Failure("grader_error", "CacheError", str(error), 3)
    found = findings.of_failure(failure, SOURCE, [], None, protocol.Build)
    assert found.reason is Reason.import_error
    assert ("the file has made it unusable" in found.message) is is_own
    assert ("Set SIMT_CACHE" in f"{found.message} {found.evidence}") is not is_own
    other = Failure("import_error", "ValueError", str(error), 3)  # the submission's own words stay what they are
    assert "Set SIMT_CACHE" in findings.of_failure(other, SOURCE, [], None, protocol.Build).message


def test_every_check_of_simt_has_a_reason_and_an_unknown_one_is_a_crash():
    from simt.checking.findings import CHECKS

    def reason(check: str) -> Reason:
        return findings.of_check(Found(check, "x", "k", "cuda_sources", 1, None, None), SOURCE, [], None).reason

    assert {*CHECKS} == {*claims.CHECK_REASONS}
    assert not {reason(check) for check in CHECKS} & {*map(str, FORBIDDEN)}
    assert all(reason(check) is Reason.crash for check in ("interrupted", "grader_error", "no_such_check"))


# --- what the worker makes of an exception ---


class Odd(simt.KernelError):
    """An error whose attributes are the submission's."""

    def __init__(self, **attributes: object):
        super().__init__("launch_error", "text")
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"reason": "interrupted"},
        {"reason": ["interrupted"]},
        {"message": 3},
        {"line": -1},
        {"line": 2**70},
        {"block": (1, 2)},
        {"thread": (1, 2, -3)},
        {"thread": "abc"},
        {"kernel": "k" * 10_000},
        {"source": None},
    ],
)
def test_an_errors_attributes_choose_nothing_that_cannot_be_sent(attributes):
    """Does the Failure survive the schema, with a reason that is accepted?"""
    import msgspec

    failure = describe_exception(Odd(**attributes), "exception", "it.py")
    answer = protocol.Answer(1, failure)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(answer), type=protocol.Answer, strict=True) == answer
    assert failure.reason in claims.accepted_reasons(protocol.Forward)


@pytest.mark.parametrize(
    "text, line, shown",
    [
        ("x = 1\nassert x.is_cuda\n", 2, "AssertionError: assert x.is_cuda"),
        ("def f(x):\n    assert (\n        x == 1\n    )\n", 3, "AssertionError: assert ( x == 1 )"),
        ("f(\n", 1, "AssertionError: f("),
        ("x = 1\n", 9, "AssertionError"),
    ],
)
def test_an_assertion_without_a_text_shows_its_statement(text, line, shown):
    """Also one of several lines, and does a file that does not parse show the line alone?"""
    failure = Failure("exception", "AssertionError", "", line)
    finding = findings.of_failure(failure, Source(Path("it.py"), text, ""), [], None, protocol.Forward)
    assert finding.message == f"forward raised an exception at line {line} of it.py: {shown}"


FORGED = {
    "an attribute": ["error = RuntimeError('x')", "error.reason = error.grader_reason = 'interrupted'", "raise error"],
    "simt's error": ["import simt", "raise simt.KernelError('interrupted', 'x')"],
    "the worker's error": [
        "from grader.worker.failures import ExplainedBuildError",
        "raise ExplainedBuildError(RuntimeError('x'), 'not_attempted', [])",
    ],
    "a missing compiler": ["import simt", "raise simt.NoCompiler('x')"],
    "a full cache": ["import simt", "raise simt.CacheError('x')"],
    "a reply": [
        "frame = sys._getframe()",
        "while type(frame.f_locals.get('self')).__name__ != 'Worker': frame = frame.f_back",
        "protocol = sys.modules['grader.worker.protocol']",
        "frame.f_locals['self'].reply(protocol.Failure('interrupted', 'x', 'y'))",
        "return x * self.scale",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("lines", FORGED.values(), ids=FORGED.keys())
def test_a_submission_cannot_end_as_anything_but_failed(problem, tmp_path, lines):  # noqa: F811
    from grader.judging.grading import grade

    path = tmp_path / "it.py"
    path.write_text(forward(*lines))
    verdict = grade(path, problem, device="cpu", seed=1)
    assert (verdict.outcome, verdict.reason) == (Outcome.failed, Reason.exception)


# --- the judge's own time ---


def worst_texts(size: int) -> list[str]:
    """Texts that cost most in what the judge does with a message."""
    parts = (
        *(
            "line 1 ",
            ", which ",
            " in line 1",
            " without a barrier in between.",
            " Put a `__syncthreads()` between the two",
            "(",
            ")",
            "[",
            "<<<",
            ">>>",
        ),
        *("a", " ", "9", "\n", "‘a’ ", "void ", "const ", "; ", "//", "The kernel's parameters are (", "{"),
        *("*", "`", "no matching function for call to ‘max(", "), but this launch gives (", '"identifier "'),
        "x, which writes in line 1 without a barrier in between. Put a `__syncthreads()` between the two",
        *("int f(int) {", "f(", "#define f\n"),
    )
    return [(part * (size // len(part) + 1))[:size] for part in parts]


@pytest.mark.parametrize(
    "text", sample(worst_texts(20_000), lambda text: text[0] in "*f"), ids=lambda text: repr(text[:12])
)
def test_the_largest_message_costs_the_judge_less_than_a_second(text):
    """Is every report of the largest size turned into a finding at once, whatever its text?"""
    sources: list[dict[str, str]] = [dict.fromkeys(("cuda_sources", "cpp_sources"), (text * 10)[:200000])] * 32
    source = Source(Path("it.py"), (f'SOURCE = r"""{text}"""\n' * 10) + RIGHT, "")
    name, label = text[:MAX_NAME], "cuda_sources"
    place = (label, 3, [0, 0, 0], [0, 0, 0])
    notes = [Note(label, n + 1, "error", text[:2000], text[:500]) for n in range(MAX_NOTES)]
    undefined = f"`f(x)` is declared and called, but no source defines it {text[:1000]}"
    reports = [
        Failure("compile_error", name, text, 1, notes),
        Failure("compile_error", name, f"‘f’ was not declared {text}"[:20_000], 1, [notes[0]]),
        Failure("link_error", name, text, 1, [Note("", 5, "error", undefined, "")]),
        Failure("exception", name, text, MAX_LINE),
        Failure("race", name, text, 1, [], name, *place),
        Found("race", text, name, *place),
        Found("race", text, "f", *place),
    ]
    longest = 0.0
    for report in reports:
        begun = time.process_time()
        if isinstance(report, Found):
            findings.of_check(report, source, sources, "a case")
        else:
            findings.of_failure(report, source, sources, "a case", protocol.Forward)
        longest = max(longest, time.process_time() - begun)
    assert longest < 1.0 and math.isfinite(longest)


@pytest.mark.parametrize(
    "message, more",
    [
        (
            "its block (42, 38, 1) has 1,596 threads; the limit is 1,024 threads per block on a T4.",
            ": a block within them fits every other GPU here.",
        ),
        (
            "it requests 90,000 bytes of shared memory per block; the limit is 49,152 bytes on a T4, and 65,536 with "
            "cudaFuncSetAttribute.",
            ": a block within them fits every other GPU here.",
        ),
        ("a cooperative launch needs all of its 999 blocks on the device at once, but only 40 fit on a T4.", "."),
    ],
)
def test_a_limit_of_the_default_gpu_is_explained(message, more):
    """Does the sentence on a launch say that --gpu changes no limit; and is nothing added where no GPU is named?"""
    text = findings.of_check(
        Found("unchecked_error", f"Kernel k was not launched: {message}", "k", "cuda_sources", 1, None, None),
        SOURCE,
        [],
        None,
    ).message
    assert text.endswith(
        f"{message} Without a GPU, a launch has the limits of the T4, whichever GPU the time is predicted for{more}"
    )
    other = message.replace("T4", "H200")
    text = findings.of_check(
        Found("unchecked_error", other, "k", "cuda_sources", 1, None, None), SOURCE, [], None
    ).message
    assert "whichever GPU" not in text
