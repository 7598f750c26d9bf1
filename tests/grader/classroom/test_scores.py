"""Do verdicts turn into the points that the rules give, and does lateness take off what it should?"""

import datetime
from typing import Any

import pytest

from grader.classroom.course import Band, Late, Points, Speed, parse_course
from grader.classroom.lateness import Lateness, count_late_days, find_lateness
from grader.classroom.scores import NOT_OWN, score
from grader.verdict import CaseResult, Measurement, Outcome, Reason, Stage, StageName, Status, Submission, Verdict

POINTS = Points(build=10, correct=40, safe=20, gradient=10, fast=20)
SPEED = Speed(reference=[Band(from_=0.5, share=0.5), Band(from_=0.9, share=1)], eager=[Band(from_=2, share=0.75)])
NOT_REACHED = {"status": Status.skipped, "reason": Reason.not_reached}


SAFE_LAST = {"gradient": NOT_REACHED, "fast": NOT_REACHED}


def make_verdict(outcome: Outcome = Outcome.passed, **stages: dict) -> Verdict:
    """A verdict in which every stage passed, but for what is said of it."""
    passed: dict[str, Any] = {"status": Status.passed}
    made = [Stage(name=name, **(passed | stages.get(name.value, {}))) for name in StageName]
    return Verdict(
        problem="groupnorm", submission=Submission(path="a.py", sha256=""), outcome=outcome, stages=made, device="cpu",
        versions={}, seed=1, seconds=1.0, sandbox="", output="", settings={}, problem_sha256="",
    )  # fmt: skip


def make_cases(*passed: bool) -> list[CaseResult]:
    return [CaseResult(name=str(n), status=Status.passed if yes else Status.failed) for n, yes in enumerate(passed)]


def over(reference: float | None = None, eager: float | None = None, **more) -> dict:
    measured = {"reference solution": reference, "eager": eager}
    return more | {
        "measurements": [
            Measurement(name=f"speed-up over {name}", value=value, unit="x")
            for name, value in measured.items()
            if value
        ]
    }


def earned(verdict: Verdict, points: Points = POINTS, speed: Speed = SPEED) -> tuple[float, float]:
    made = score(verdict, points, speed)
    assert made is not None
    return made.earned, made.possible


@pytest.mark.parametrize(
    "fast, points",
    [
        (over(reference=0.49), 0.0),
        (over(reference=0.5), 10.0),
        (over(reference=0.89), 10.0),
        (over(reference=5), 20.0),
        (over(reference=0.6, eager=2.5), 15.0),
        (over(reference=1.0, eager=2.5), 20.0),
    ],
)
def test_bands_of_speed(fast, points):
    """Does the last band that is reached count, and the larger of two shares?"""
    assert earned(make_verdict(fast=fast)) == (80 + points, 100)


@pytest.mark.parametrize(
    "fast",
    [{"status": Status.skipped, "reason": Reason.no_gpu}, over(reference=5, reason=Reason.inconclusive)],
)
@pytest.mark.parametrize("unmeasured, expected", [("left_out", (80, 80)), ("full", (100, 100)), ("none", (80, 100))])
def test_no_speed(fast, unmeasured, expected):
    """Does a missing or doubtful figure follow the course's rule, and never count as a speed?"""
    assert earned(make_verdict(fast=fast), speed=Speed(unmeasured=unmeasured)) == expected


def test_cases_earn_their_share():
    later = dict.fromkeys(("safe", "gradient", "fast"), NOT_REACHED)
    wrong = {"status": Status.failed, "reason": Reason.wrong_values, "cases": make_cases(True, True, True, False)}
    assert earned(make_verdict(Outcome.failed, correct=wrong, **later)) == (10 + 30, 100)
    without = Points(build=10, correct=40, safe=20, gradient=10, fast=20, by_case=False)
    assert earned(make_verdict(Outcome.failed, correct=wrong, **later), without) == (10, 100)


@pytest.mark.parametrize("reason", ["no_kernel", "unneeded_kernel", "torch_operator", "false_report"])
def test_right_values_of_somebody_else_earn_nothing(reason):
    """Does no stage earn points, "build" and stages that passed among them, where other code made the right results?"""
    wrong = {"status": Status.failed, "reason": Reason(reason), "cases": make_cases(True, True)}
    for later in ({}, dict.fromkeys(("safe", "gradient", "fast"), NOT_REACHED)):
        verdict = make_verdict(Outcome.failed, correct=wrong, **later)
        assert earned(verdict, speed=Speed(unmeasured="full")) == (0, 100)
        made = score(verdict, POINTS, SPEED)
        assert made is not None and made.note == NOT_OWN
        assert made.parts[0].why == f"{reason.replace('_', ' ')}: no stage counts"


def test_a_mark_on_a_failed_submission_costs_everything():
    """Does a file without a kernel earn nothing, not even "build", where "safe" is what fails it?"""
    marked = {"status": Status.passed, "reason": Reason.no_kernel, "cases": make_cases(True, True)}
    unsafe = {"status": Status.failed, "reason": Reason.output_reused, "cases": make_cases(True, False)}
    later = {"gradient": NOT_REACHED, "fast": NOT_REACHED}
    assert earned(make_verdict(Outcome.failed, correct=marked, safe=unsafe, **later)) == (0, 100)


def test_gradients_of_somebody_else_cost_their_points_alone():
    """Does forward keep its points where backward's kernels do not compute the gradients?"""
    wrong = {"status": Status.failed, "reason": Reason.no_kernel, "cases": make_cases(True, True)}
    assert earned(make_verdict(Outcome.failed, gradient=wrong, fast=NOT_REACHED)) == (70, 100)


def test_a_failure_that_no_case_shows():
    """Does "correct" earn nothing where it failed although every case passed?"""
    wrong = {"status": Status.failed, "reason": Reason.wrong_values, "cases": make_cases(True, True)}
    assert earned(make_verdict(Outcome.failed, correct=wrong, **SAFE_LAST)) == (10 + 20, 100)


def test_what_is_not_known_earns_nothing():
    """Do marks take the points of a stage that passed: "build" without a kernel, results of unknown origin?"""
    unsafe = {"status": Status.failed, "reason": Reason.race}
    later = {"safe": unsafe, "gradient": NOT_REACHED, "fast": NOT_REACHED}
    unknown = {"status": Status.passed, "reason": Reason.inconclusive}
    assert earned(make_verdict(Outcome.failed, correct=unknown, **later)) == (10, 100)
    empty = {"status": Status.passed, "reason": Reason.no_kernel}
    assert earned(make_verdict(Outcome.failed, build=empty, **later)) == (40, 100)
    assert earned(make_verdict(correct=empty, fast=over(reference=1))) == (100, 100)  # the problem allows it


def test_what_is_not_asked_for_is_left_out():
    skipped = {"status": Status.skipped, "message": "This problem asks for no gradient."}
    assert earned(make_verdict(gradient=skipped, fast=over(reference=1))) == (90, 90)


def test_nothing_done_and_nothing_known():
    """Does an exercise that is not attempted earn nothing, and does a failure of the grader say nothing?"""
    rest = dict.fromkeys((name.value for name in StageName), NOT_REACHED)
    assert earned(make_verdict(Outcome.not_attempted, **rest)) == (0, 100)
    assert score(make_verdict(Outcome.error, **rest), POINTS, SPEED) is None


# --- lateness ---

DUE = datetime.datetime(2026, 12, 1, 18, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "minutes, grace, days",
    [(-1, 0, 0), (0, 0, 0), (1, 0, 1), (10, 10, 0), (11, 10, 1), (1440, 0, 1), (1441, 0, 2), (3 * 1440, 10, 3)],
)
def test_days_begun(minutes, grace, days):
    assert count_late_days(DUE + datetime.timedelta(minutes=minutes), DUE, grace) == days
    assert count_late_days(DUE, None, 0) == 0


def test_days_count_hours_and_not_dates():
    """Is the hour that a clock is set back counted?"""
    text = 'title = "x"\ntimezone = "Europe/Zurich"\n[problems.matmul]\ndue = 2026-10-24T23:00:00\n'
    due = parse_course(text, None).due("matmul")  # type: ignore[arg-type]
    handed_in = datetime.datetime.fromisoformat("2026-10-25T23:30:00+01:00")  # 25 and a half hours later
    assert due is not None and count_late_days(handed_in, due, 0) == 2


def test_free_days_go_to_the_first_deadlines(tmp_path):
    """Are free days spent in the order of the deadlines, and the others paid for?"""
    course = parse_course(
        'title = "x"\n[late]\npercent_a_day = 20\nfree_days = 3\nmost_days = 4\n'
        "[problems.matmul]\ndue = 2026-12-08T18:00:00Z\n[problems.groupnorm]\ndue = 2026-12-01T18:00:00Z\n"
        "[problems.conv2d]\n[problems.logsumexp]\ndue = 2026-12-15T18:00:00Z\n",
        tmp_path,
    )
    day = datetime.timedelta(days=1)
    handed_in = {
        "matmul": DUE + 9 * day, "groupnorm": DUE + 2 * day, "conv2d": DUE + 99 * day, "logsumexp": DUE + 19 * day,
    }  # fmt: skip
    late_days = {name: count_late_days(at, course.due(name), 0) for name, at in handed_in.items()}
    assert find_lateness(course, late_days) == {
        "groupnorm": Lateness(days=2, free=2, factor=1.0),
        "matmul": Lateness(days=2, free=1, factor=0.8),
        "logsumexp": Lateness(days=5, free=0, factor=0.0),
        "conv2d": Lateness(),
    }
    assert Late().most_days == 7
