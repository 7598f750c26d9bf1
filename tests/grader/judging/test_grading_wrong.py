"""Does each wrong result fail with its reason, and nothing that is right?"""

import pytest

from grader.verdict import Outcome, Reason, StageName, Status
from tests.grader.judging.submissions import by_rows, many_cases
from tests.grader.scaffold import PROBLEM, RIGHT, forward

# One submission that goes wrong in another way for each number of rows, so that one worker does for all.
WRONG = {
    "None": ("None", Reason.wrong_type),
    "a tuple": ("(right, x)", Reason.wrong_type),
    "a list of one": ("[right]", Reason.wrong_type),
    "a dict": ("{'y': right}", Reason.wrong_type),
    "a sparse tensor": ("right.to_sparse()", Reason.wrong_type),
    "another shape": ("right[:, 1:]", Reason.wrong_shape),
    "a shape of a terabyte": ("torch.zeros(1).expand(1 << 40)", Reason.wrong_shape),
    "a shape of 62 bits": ("torch.zeros(1).expand(2**31, 2**31 - 1)", Reason.wrong_shape),
    "an empty shape of 62 bits": ("torch.zeros(0, 2**62)", Reason.wrong_shape),
    "another dtype": ("right.half()", Reason.wrong_dtype),
    "a dtype that cannot be sent": ("torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)", Reason.wrong_dtype),
    "no memory": ("right.to('meta')", Reason.wrong_device),
    "other values": ("right + 0.1", Reason.wrong_values),
    "NaN": ("right * float('nan')", Reason.non_finite),
    "a terabyte": ("torch.empty(1 << 40)", Reason.out_of_memory),
    "an exception": ("throw(ValueError('no ' * 10_000_000))", Reason.exception),
    "sys.exit": ("sys.exit(0)", Reason.exception),
    "endless recursion": ("self.forward(x)", Reason.exception),
}
# The same for what is right by its values.
UNSAFE = {
    "nothing wrong": ("right", None),
    "writes to its input": ("(right, x.zero_())[0]", Reason.input_modified),
    "returns its input": ("x.copy_(right)", Reason.input_modified),
    "keeps its output": ("self.kept.copy_(right)", Reason.output_reused),
    "is right once": ("right + (self.calls > 1)", Reason.nondeterministic),
}


@pytest.mark.slow
def test_each_wrong_result_fails_with_its_reason(judged, tmp_path):
    verdict = judged(by_rows([text for text, _ in WRONG.values()]), problem=many_cases(tmp_path, list(WRONG)))
    assert {c.name: c.reason for c in verdict.stage("correct").cases} == {n: r for n, (_, r) in WRONG.items()}
    assert (verdict.outcome, verdict.reason) == (Outcome.failed, Reason.wrong_type)
    assert "nothing (None)" in verdict.first_problem.message


@pytest.mark.slow
def test_right_values_are_not_enough(judged, tmp_path):
    verdict = judged(by_rows([text for text, _ in UNSAFE.values()]), problem=many_cases(tmp_path, list(UNSAFE)))
    assert verdict.stage("correct").status is Status.passed
    assert {c.name: c.reason for c in verdict.stage("safe").cases} == {n: r for n, (_, r) in UNSAFE.items()}
    assert (verdict.first_problem.name, verdict.reason) == (StageName.safe, Reason.input_modified)


@pytest.mark.slow
def test_a_copy_of_the_first_result_is_no_result_for_other_values(judged):
    verdict = judged(forward("self.kept = getattr(self, 'kept', x * self.scale)", "return self.kept.clone()"))
    assert (verdict.first_problem.name, verdict.reason) == (StageName.safe, Reason.output_reused)
    assert "the previous call" in verdict.first_problem.message and verdict.first_problem.evidence[0].case == "wide"


@pytest.mark.slow
def test_other_values_show_what_is_kept_in_part(judged):
    verdict = judged(
        forward(
            "self.mean = getattr(self, 'mean', x[0, 0].item())", "return x * self.scale * (x[0, 0].item() / self.mean)"
        )
    )
    assert (verdict.first_problem.name, verdict.reason) == (StageName.safe, Reason.wrong_values)


def test_values_that_model_refuses_are_not_tried(judged, tmp_path):
    sorted_only = tmp_path / "sorted_only.py"
    refusing = PROBLEM.replace("return x * self.scale", "assert (x.diff() >= 0).all()\n        return x * self.scale")
    sorted_only.write_text(
        refusing.replace("torch.rand(batch_size, features)", "torch.rand(batch_size, features).sort().values").replace(
            '"normal"', '"file"'
        )
    )
    assert judged(RIGHT, problem=sorted_only).outcome is Outcome.passed


def test_random_results_are_explained_though_they_are_wrong(judged):
    verdict = judged(forward("return x * self.scale + torch.rand_like(x)"))
    assert verdict.reason is Reason.wrong_values
    assert verdict.stage("safe").reason is Reason.nondeterministic


def test_what_model_itself_does_to_its_input_is_allowed(judged, tmp_path):
    mutating = tmp_path / "mutating.py"
    mutating.write_text(PROBLEM.replace("return x * self.scale", "return x.mul_(self.scale)"))
    assert judged(forward("return x.mul_(self.scale)"), problem=mutating).outcome is Outcome.passed


RETURNS = [
    "x * self.scale, None",
    "[x * self.scale]",
    "(x * self.scale).sum().item()",
    "{'a': x * self.scale, 'b': (x + 1, 3, None)}",
]


@pytest.mark.slow
@pytest.mark.parametrize("returned", RETURNS)
def test_models_own_code_is_right_whatever_it_returns(judged, tmp_path, returned):
    """Do None, numbers and dicts beside tensors count on both sides alike?"""
    odd = tmp_path / "odd.py"
    odd.write_text(PROBLEM.replace("return x * self.scale", f"return {returned}"))
    assert judged(forward(f"return {returned}"), problem=odd).outcome is Outcome.passed


@pytest.mark.slow
@pytest.mark.parametrize(
    "returned, reason",
    [
        ("right, 3, None", None),
        ("right, 4, None", Reason.wrong_values),
        ("3, right, None", Reason.wrong_shape),
        ("right, None, None", Reason.wrong_type),
        ("right, 3", Reason.wrong_type),
    ],
)
def test_what_stands_beside_a_tensor_must_be_right_too(judged, tmp_path, returned, reason):
    odd = tmp_path / "odd.py"
    odd.write_text(PROBLEM.replace("return x * self.scale", "return x * self.scale, 3, None"))
    assert judged(forward("right = x * self.scale", f"return {returned}"), problem=odd).reason is reason


@pytest.mark.slow
def test_a_copy_of_the_first_result_is_no_result_for_other_integers(judged, tmp_path):
    """Are values moved where all inputs are integers, too?"""
    whole = tmp_path / "whole.py"
    whole.write_text(
        PROBLEM.replace("torch.rand(batch_size, features)", "torch.randint(0, 1000, (batch_size, features))")
    )
    kept = forward("self.kept = getattr(self, 'kept', x * self.scale)", "return self.kept.clone()")
    assert judged(kept, problem=whole).reason is Reason.output_reused
    assert judged(RIGHT, problem=whole).outcome is Outcome.passed
