"""Does lint name what the cases of planted weak problems let pass, with a case that rejects it, and nothing else?"""

import pytest
import torch

from grader.judging import grading, tolerance
from grader.judging.trial import prepare_trial
from grader.lint import run
from grader.lint.attempt import is_accepted
from grader.problems import problem as problems
from grader.problems.values import copy_values
from tests.grader.lint import planted
from tests.grader.scaffold import PROBLEM, forward
from tests.sample import sample


def names(result):
    """The survivors' names."""
    return {one.label.name for one in result.survivors}


def by_name(result, name):
    (found,) = [one for one in result.outcomes if one.label.name == name]
    return found


def test_a_bias_that_is_zero_in_all_cases_can_be_forgotten(lint):
    """Do the decoy and the mutant without the bias survive, and is a case with another bias named?"""
    result = lint(planted.ZERO_BIAS)
    assert {"`bias` forgotten (0)", "x + self.bias → x"} <= names(result)
    assert {one.suggestion.what for one in result.survivors} == {
        "buffers whose values are neither 0, nor 1, nor all equal"
    }
    assert result.rate("decoy")[0] < result.rate("decoy")[1]


def test_the_named_case_rejects_it(lint):
    """Does nothing survive once the bias has other values?"""
    assert not lint(planted.BIAS).survivors


def test_a_symmetric_input_can_be_read_transposed(lint):
    result = lint(planted.SYMMETRIC)
    assert names(result) == {"`A` read transposed"}
    (survivor,) = result.survivors
    assert survivor.suggestion.entry == {"name": "normal inputs", "set": {"size": 13}, "inputs": "normal"}


def test_the_named_entry_of_cases_rejects_it(lint):
    """Does nothing survive once the suggested entry is in CASES?"""
    text = planted.SYMMETRIC.replace('{"name": "nine"}', '{"name": "normal inputs", "set": {}, "inputs": "normal"}')
    assert not lint(text).survivors


def test_a_tolerance_that_is_too_wide_shows(lint):
    """Do small errors survive where Model itself loses digits?"""
    found = names(lint(planted.CANCELLING))
    assert {"all values 1 % too large", "one element wrong by 1 % of the root mean square"} <= found


def test_a_constant_output_shows(lint):
    """Is it named that an output which is 1 everywhere does not depend on the input?"""
    found = names(lint(planted.CONSTANT))
    assert "a constant (the mean of the expected output)" in found and "zeros read in place of `x`" in found
    assert "zeros" not in found and "dimension 0 shifted by one" in found


def test_exponentials_that_overflow_are_rejected_by_large_values_alone(lint):
    """Does a softmax without its maximum survive small values, and is a case with larger ones named?"""
    result = lint(planted.SOFTMAX)
    (survivor,) = result.survivors
    assert survivor.label.name == "exp without subtracting the maximum"
    assert survivor.suggestion.entry["inputs"] == "large_mean"
    assert not [one for one in lint(planted.ONE_ROW).outcomes if one.label.group == "overflow"]


def test_a_missing_size_is_suggested(lint):
    """Does a sum over one row, which needs no sum, lead to a case with more rows?"""
    result = lint(planted.ONE_ROW)
    mutant = by_name(result, "x.sum(0) → x.mean(0)")
    assert mutant.status == "survived" and mutant.suggestion.entry["set"] == {"rows": 2}


def test_nothing_survives_a_strong_problem(lint):
    """Is each decoy and mutant of a problem with two sound cases killed, each by a case that is named?"""
    result = lint(PROBLEM)
    assert not result.survivors
    assert result.rate("decoy")[0] == result.rate("decoy")[1] > 25 and result.rate("mutant")[1] >= 3
    assert {name for one in result.outcomes for name in one.killed_by} <= {
        *("one row", "wide"),
    }


def test_mutants_that_are_equivalent_or_raise_do_not_count(lint):
    """Are exchanged arguments of a maximum, which change nothing, and a dimension that does not exist left out?"""
    result = lint(planted.EQUIVALENT)
    assert by_name(result, "torch.maximum(x, y) → torch.maximum(y, x)").status == "equivalent"
    assert by_name(result, "torch.maximum(x, y) → torch.minimum(x, y)").status == "killed"
    assert by_name(result, "3.0 → 6.0").status == "killed"
    assert not result.survivors
    assert result.raising >= 1 and not [one for one in result.outcomes if one.label.name == "1 → 2"]


def test_quick_reports_decoys_alone(read):
    result = run.lint_quickly(read(planted.CONSTANT), 60)
    assert "a constant (the mean of the expected output)" in names(result)
    assert not result.of_kind("mutant")


@pytest.mark.parametrize("text", [planted.CONSTANT.replace("size = 7", "size = 90_000"), planted.CONSTANT])
def test_quick_gives_up(read, text):
    """Does it stop where a case is too large, and where its time is over?"""
    with pytest.raises(run.OutOfTime):
        run.lint_quickly(read(text), 60 if "90_000" in text else 0)


@pytest.mark.parametrize("kind", sample(planted.UNUSUAL, ["two outputs, one of them integers", "a dict"]))
def test_unusual_problems_are_linted(lint, kind):
    """Are decoys and mutants of outputs and inputs of every kind run, and nearly all killed?"""
    result = lint(planted.make_unusual(kind))
    killed, counted = result.rate("decoy")
    assert counted > 10 and killed >= counted - 2, names(result)
    assert all(one.label.kind == "decoy" for one in result.survivors), names(result)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result(lint):
    assert lint(planted.ZERO_BIAS).to_data() == lint(planted.ZERO_BIAS).to_data()


def test_the_comparison_is_the_judge_s(read):
    """Is the last float32 inside the judge's tolerance accepted, and the next one rejected?"""
    problem = read(PROBLEM)
    case = problem.cases()[1]
    trial = prepare_trial(case, problem.instantiate(case, 0))
    (expected,), (eager,), (noise,) = trial.expected, trial.eager, trial.noise
    allowed = tolerance.tolerance(expected, eager, case.reduction, noise)
    place = torch.unravel_index(allowed.argmax(), allowed.shape)
    border = expected[place] + allowed[place]
    inside, up = border.float(), torch.tensor(torch.inf)
    while inside.double() > border:
        inside = torch.nextafter(inside, -up)
    for value, accepted in ((inside, True), (torch.nextafter(inside, up), False)):
        got = eager.clone()
        got[place] = value
        assert is_accepted(trial, [got]) is accepted


@pytest.mark.slow
@pytest.mark.parametrize("error", [3e-7, 1e-4])
def test_a_submission_fares_as_its_decoy(read, tmp_path, error):
    """Does `grade` pass a submission exactly if lint's comparison accepts the same outputs in each case?"""
    path = read(PROBLEM).path
    problem = problems.read(path)
    accepted = []
    for case in problem.cases():
        instance = problem.instantiate(case, 5)
        trial = prepare_trial(case, instance)
        model, inputs = instance.build(), copy_values(instance.inputs)
        with torch.no_grad():
            accepted.append(is_accepted(trial, [model(*inputs) * (1 + error)]))
    submission = tmp_path / "moved.py"
    submission.write_text(forward(f"return x * self.scale * (1 + {error})"))
    verdict = grading.grade(submission, problem=path, device="cpu", seed=5)
    assert (verdict.outcome == "passed") is all(accepted) is (error < 1e-6)


def test_the_instance_of_a_trial_stays_as_it_was(read):
    """Do decoys leave the weights and inputs of the case untouched?"""
    problem = read(planted.BIAS)
    case = problem.cases()[0]
    instance = problem.instantiate(case, 0)
    weights, inputs = instance.model.state_dict()["bias"].clone(), instance.inputs[0].clone()
    one = run._Run(problem, "cpu", 0)
    trial = prepare_trial(case, instance)
    expected = [out.clone() for out in trial.expected]
    one.trials.append(trial)
    one.try_all(trial, one.list_decoys(trial))
    assert torch.equal(instance.model.state_dict()["bias"], weights) and torch.equal(instance.inputs[0], inputs)
    assert torch.equal(trial.expected[0], expected[0]) and torch.equal(instance.eager()[0], trial.eager[0])
