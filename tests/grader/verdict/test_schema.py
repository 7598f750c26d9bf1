"""Does the verdict keep its one schema?"""

import json
from typing import Any

import msgspec
import pytest

from grader.judging import findings
from grader.verdict import Evidence, Measurement, Outcome, Reason, Stage, StageName, Status, Submission, Verdict
from grader.verdict import schema as verdict
from grader.worker import protocol


def made(**changes) -> Verdict:
    stages = [
        Stage(name=StageName.contract, status=Status.passed, seconds=0.1),
        Stage(
            name=StageName.correct,
            status=Status.failed,
            reason=Reason.wrong_values,
            message="The values are wrong.",
            evidence=[Evidence(case="odd", index=[0, 3], expected=1.5, got=float("nan"), line=31)],
            measurements=[Measurement(name="eager", value=1.25, unit="ms", samples=20)],
        ),
    ]
    fields: dict[str, Any] = {
        "problem": "p",
        "submission": Submission(path="p.py", sha256="0" * 64),
        "outcome": Outcome.failed,
        "stages": stages,
        "device": "cpu",
        "versions": {"torch": "2.11"},
        "seed": 7,
        "seconds": 1.0,
        "sandbox": "none",
    }
    return Verdict(**(fields | changes))


def test_a_verdict_survives_json():
    before = made(stages=made().stages[:1])
    assert verdict.from_json(verdict.to_json(before)) == before


def test_a_verdict_without_launches_is_read():
    plain = json.loads(verdict.to_json(made()))
    assert "launches" not in plain["stages"][1]["evidence"][0]
    assert verdict.from_json(json.dumps(plain)).stages[1].evidence[0].launches == []


def test_a_name_that_is_not_utf8_can_be_written():
    """In a path, and in a sentence that names it: are its bytes shown, and all else unchanged?"""
    before = made(submission=Submission(path="ü\udcff.py", sha256=""), stages=made().stages[:1])
    before.stages[0].message = "a\udcff.py is empty"
    after = verdict.from_json(verdict.to_json(before))
    assert (after.submission.path, after.stages[0].message) == (r"ü\xff.py", r"a\xff.py is empty")
    after.submission, after.stages[0].message = before.submission, before.stages[0].message
    assert after == before
    assert verdict.spelled("ü.py") == verdict.spelled("\udcc3\udcbc.py") == "ü.py"  # the latter where the locale is C


def test_launches_that_can_be_none_are_left_out_and_many_cut_short():
    """A worker may say anything: names of any length, grids of no block."""
    launches_sent = [protocol.Launch("k" * 1000, (1, 1, n), (32, 1, 1)) for n in range(-1, 40)]
    kept = findings.of_launches([*launches_sent, protocol.Launch("k", (2**40, 1, 1), (1, 1, 1))])
    assert [one.grid[2] for one in kept] == list(range(25, 40)) and all(len(one.kernel) <= 400 for one in kept)
    before = made(stages=[Stage(name=StageName.correct, status=Status.failed, evidence=[Evidence(launches=kept)])])
    assert verdict.from_json(verdict.to_json(before)) == before


def test_nan_becomes_null_which_every_json_reader_takes():
    plain = json.loads(verdict.to_json(made()))
    assert plain["stages"][1]["evidence"][0]["got"] is None
    assert "NaN" not in verdict.to_json(made()).decode()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plain: plain.update(mood="good"),
        lambda plain: plain.pop("seed"),
        lambda plain: plain.update(seed="7"),
        lambda plain: plain.update(outcome="splendid"),
        lambda plain: plain["stages"][1].update(reason="bad luck"),
        lambda plain: plain["stages"][1]["evidence"][0].update(colour="red"),
        lambda plain: plain.update(schema="kernel-course/verdict/0"),
    ],
)
def test_anything_that_is_not_in_the_schema_is_refused(spoil):
    plain = json.loads(verdict.to_json(made()))
    spoil(plain)
    with pytest.raises(msgspec.ValidationError):
        verdict.from_json(json.dumps(plain))


def test_every_reason_has_one_sentence():
    assert set(verdict.EXPLANATIONS) == set(Reason)
    assert all(text.endswith(".") for text in verdict.EXPLANATIONS.values())


def test_the_schema_names_every_field_and_every_reason():
    schema = verdict.json_schema()
    assert set(schema["$defs"]["Verdict"]["properties"]) == set(Verdict.__struct_fields__)
    assert set(schema["$defs"]["Reason"]["enum"]) == {reason.value for reason in Reason}
    json.dumps(schema)


@pytest.mark.parametrize(
    "statuses, reason, outcome",
    [
        ("passed skipped", None, Outcome.passed),
        ("passed failed skipped", Reason.wrong_values, Outcome.failed),
        ("failed skipped", Reason.not_attempted, Outcome.not_attempted),
        ("passed error skipped", Reason.no_compiler, Outcome.error),
    ],
)
def test_stages_amount_to_an_outcome(statuses, reason, outcome):
    stages = [Stage(name=name, status=Status(s)) for name, s in zip(StageName, statuses.split())]
    for stage in stages:
        if stage.status in (Status.failed, Status.error):
            stage.reason = reason
    assert verdict.outcome_of(stages) is outcome


def test_the_reason_is_that_of_the_first_stage_that_did_not_pass():
    assert made().reason is Reason.wrong_values
    assert made(stages=made().stages[:1]).reason is None


CPU = "cpu (x86_64, 2 cores)"


@pytest.mark.parametrize(
    "reason, made_with, timeout, holds",
    [
        (Reason.wrong_values, 20.0, 20.0, True),
        (Reason.wrong_values, 20.0, 60.0, True),
        (Reason.wrong_values, 20.0, 5.0, False),
        (Reason.timeout, 20.0, 20.0, True),
        (Reason.timeout, 20.0, 60.0, False),
        (Reason.kernel_timeout, 20.0, 60.0, False),
        (Reason.build_timeout, None, 60.0, False),  # an older grader's, whose limit was the usual one
        (Reason.wrong_values, None, 60.0, True),
        (Reason.timeout, 60.0, None, True),
    ],
)
def test_a_verdict_holds_until_another_time_limit_could_change_it(reason, made_with, timeout, holds):
    one = made(device=CPU, timeout=made_with)
    one.stages[1].reason = reason
    assert one.holds_for(None, timeout) is holds


def test_a_time_limit_of_one_case_counts():
    one = made(device=CPU, timeout=20.0)
    one.stages[1].cases = [verdict.CaseResult(name="odd", status=Status.failed, reason=Reason.timeout)]
    assert one.holds_for("cpu", 20.0) and not one.holds_for("cpu", 30.0)


def test_a_verdict_holds_on_its_device_and_for_its_prediction():
    for device, ran_on, other in ((CPU, "cpu", "cuda"), ("NVIDIA H200", "cuda", "cpu")):
        assert made(device=device).holds_for(None, None) and made(device=device).holds_for(ran_on, None)
        assert not made(device=device).holds_for(other, None)
    prediction = verdict.Prediction(
        gpu="T4", sizes=[[1]], ms=1.0, low=1.0, high=1.0, limit="DRAM", bound_ms=1.0, launches=[]
    )
    fast = Stage(name=StageName.fast, status=Status.skipped, prediction=prediction)
    assert made(stages=[fast]).holds_for(None, None, "T4") and made(stages=[fast]).holds_for(None, None)
    assert not made(stages=[fast]).holds_for(None, None, "H200")
    assert made().holds_for(None, None, "H200")  # failed: nothing was predicted
    fast.measurements = [verdict.Measurement(name=verdict.TIMED, value=1.0, unit="ms")]
    assert made(stages=[fast]).holds_for(None, None, "H200")  # measured: the prediction stands next to it
