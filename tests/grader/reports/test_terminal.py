"""Does a verdict read well on any terminal, and can a submission's text do it no harm?"""

import io
from typing import Any

import pytest
from rich.console import Console

from grader.reports import terminal
from grader.verdict import (
    CaseResult,
    Evidence,
    Measurement,
    Outcome,
    Reason,
    Stage,
    StageName,
    Status,
    Submission,
    Verdict,
)


def verdict(stages: list[Stage], outcome: Outcome = Outcome.failed, **fields) -> Verdict:
    given: dict[str, Any] = {
        "problem": "groupnorm",
        "submission": Submission(path="groupnorm.py", sha256=""),
        "outcome": outcome,
        "stages": stages,
        "device": "cpu",
        "versions": {},
        "seed": 7,
        "seconds": 1.25,
        "sandbox": "none",
    }
    return Verdict(**(given | fields))


def drawn(made: Verdict, width: int = 100, **options) -> str:
    """What a pipe gets."""
    out = io.StringIO()
    terminal.show(Console(file=out, width=width, highlight=False, **options), made)
    return out.getvalue()


def test_a_report_without_a_sandbox_says_so_first():
    """Is it the first line, and not there with a sandbox, or if nothing ran?"""
    for sandbox, expected in (("none: …", True), ("bubblewrap: …", False), ("not needed: …", False)):
        printed = drawn(verdict([], sandbox=sandbox))
        assert printed.startswith(terminal.UNPROTECTED) == expected and printed.count(terminal.UNPROTECTED) == int(
            expected
        )


WRONG = Stage(
    name=StageName.correct,
    status=Status.failed,
    seconds=0.4,
    reason=Reason.wrong_values,
    message="The values are wrong: every 32nd value.",
    evidence=[
        Evidence(
            case="odd",
            index=[0, 3],
            expected=1.5,
            got=None,
            wrong_count=4,
            total=128,
            pattern="every 32nd value",
            line=31,
            text="y[i] = x[i];",
            kernel="norm",
            block=[0, 0, 0],
            thread=[5, 0, 0],
        )
    ],
    cases=[CaseResult(name="even", status=Status.passed), CaseResult(name="odd", status=Status.failed)],
)


def test_a_failure_shows_what_is_known_of_it():
    text = drawn(verdict([WRONG]))
    for part in (
        "groupnorm.py",
        "failed",
        "wrong values",
        "1 of 2 cases",
        "every 32nd value",
        "[0, 3]",
        "1.5",
        "seed 7",
    ):
        assert part in text
    for part in ("not a finite number", "4 of 128", "line 31", "y[i] = x[i];", "norm", "(0, 0, 0)", "(5, 0, 0)", "0.4"):
        assert part in text


def test_large_numbers_have_separators():
    """Are counts and values from a thousand on shown as the sentences show them?"""
    known = dict(terminal.facts(Evidence(index=[0], expected=15876.5, got=-2048, wrong_count=15014, total=15015)))
    assert (known["wrong"], known["expected"], known["got"]) == ("15,014 of 15,015", "15,876.5", "-2,048")


def test_integers_are_shown_with_all_digits():
    """Are values that must be equal, and have no tolerance, not rounded to six digits?"""
    known = dict(terminal.facts(Evidence(index=[0], expected=567210063.0, got=2143715270.0, max_error=1576505207.0)))
    shown = [known[name] for name in ("expected", "got", "largest error")]
    assert shown == ["567,210,063", "2,143,715,270", "1,576,505,207"]
    known = dict(terminal.facts(Evidence(index=[0], expected=567210063.0, got=float("inf"), tolerance=1.0)))
    assert (known["expected"], known["got"]) == ("5.6721e+08", "inf")


def test_a_pipe_gets_no_escape_sequences_and_a_terminal_does():
    assert "\x1b" not in drawn(verdict([WRONG]))
    assert "\x1b[" in drawn(verdict([WRONG]), force_terminal=True, color_system="standard")


def test_brackets_in_a_students_text_are_text():
    stage = Stage(
        name=StageName.build, status=Status.failed, reason=Reason.compile_error, message="[bold]a[i][/bold] [/x]"
    )
    assert "[bold]a[i][/bold] [/x]" in drawn(verdict([stage], output="[red]hello[/red]"))


def test_control_characters_of_a_submission_do_not_reach_the_terminal():
    nasty = "before\x1b[2J\x07\x9b31m\u202eafter"
    stage = Stage(name=StageName.correct, status=Status.failed, reason=Reason.exception, message=nasty)
    stage.evidence = [Evidence(case="c", text=nasty, detail=nasty)]
    text = drawn(verdict([stage], output=nasty))
    assert "before" in text and "after" in text
    assert not any(character in text for character in "\x1b\x07\x9b\u202e")


def test_a_files_name_is_text_in_one_line():
    """Escape sequences, line ends and rich's markup in names of files and problems: do they stay text?"""
    made = verdict(
        [WRONG],
        problem="[blink]p\x1b[31m",
        submission=Submission(path="a\x1b[31m\n\u2028b[bold].py: passed", sha256=""),
    )
    out = io.StringIO()
    terminal.show_summary(Console(file=out, width=100, highlight=False), [made])
    for text in (terminal.head(made).plain, out.getvalue()):
        assert "\x1b" not in text and "a�[31m��b[bold].py: passed" in text and "[blink]p�[31m" in text


def test_a_passed_submission_shows_no_output_and_no_advice():
    stage = Stage(name=StageName.contract, status=Status.passed)
    text = drawn(verdict([stage], Outcome.passed, output="chatter"))
    assert "passed" in text and "chatter" not in text


def test_long_evidence_is_cut():
    stage = Stage(name=StageName.build, status=Status.failed, reason=Reason.compile_error, message="no")
    stage.evidence = [Evidence(line=n, text=f"line{n}", detail="\n".join(map(str, range(500)))) for n in range(1, 30)]
    text = drawn(verdict([stage]))
    assert len(text.splitlines()) < 60 and "26 more" in text


def test_times_are_shown_with_their_spread():
    stage = Stage(name=StageName.fast, status=Status.passed)
    stage.measurements = [Measurement(name="eager", value=1.234, unit="ms", low=1.2, high=1.3, samples=40)]
    text = drawn(verdict([stage], Outcome.passed))
    assert "1.234 ms" in text and "1.2 to 1.3" in text and "40" in text


@pytest.mark.parametrize(
    "outcome, word", [(Outcome.not_attempted, "not attempted"), (Outcome.error, "could not be graded")]
)
def test_outcomes_are_shown_in_words(outcome, word):
    assert word in drawn(verdict([], outcome))


def test_what_was_not_attempted_has_not_failed():
    """Is it told what to do, without the word failed?"""
    stage = Stage(
        name=StageName.contract, status=Status.failed, reason=Reason.not_attempted, message="Fill in the places."
    )
    text = drawn(verdict([stage], Outcome.not_attempted))
    assert "Fill in the places." in text and "failed" not in text


def test_the_summary_has_a_line_for_each_submission():
    out = io.StringIO()
    several = [verdict([WRONG], submission=Submission(path=f"{name}.py", sha256="")) for name in ("ann", "bob")]
    terminal.show_summary(Console(file=out, width=100), several)
    lines = out.getvalue().splitlines()
    assert len(lines) == 3 and "ann.py" in lines[1] and "bob.py" in lines[2] and "wrong values" in lines[2]


def test_progress_prints_nothing_without_a_terminal():
    out = io.StringIO()
    with terminal.Progress(Console(file=out), "it.py") as progress:
        progress(StageName.build, "compiling")
    assert out.getvalue() == ""


def test_a_nan_that_the_checks_explain_is_not_looked_for_in_exp():
    """Is the advice on exp and division left out where a race or memory that holds anything explains the NaN?"""
    nan = Stage(name=StageName.correct, status=Status.failed, reason=Reason.non_finite, message="The output is NaN.")
    assert "exp of a large number" in terminal.advice(nan, [nan])
    for reason in (Reason.uninitialized, Reason.out_of_bounds, Reason.warp_divergence):
        found = Stage(name=StageName.safe, status=Status.failed, reason=reason, message="Thread (0, 0, 0) reads it.")
        assert terminal.advice(nan, [nan, found]) == ""
