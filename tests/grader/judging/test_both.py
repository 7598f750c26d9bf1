"""Does the verdict from a GPU's run and a CPU's say what each of them showed, and which of them is which?

No GPU is needed: the CPU's verdicts are real ones, the GPU's stages are made.
"""

import gc
import weakref

import pytest

from grader.judging import both, context
from grader.judging.grading import grade
from grader.judging.processes import beside
from grader.judging.stages import contract
from grader.judging.trial import prepare_trial
from grader.paths import KERNELS_REF, ROOT
from grader.verdict import CaseResult, Evidence, Outcome, Reason, Stage, StageName, Status
from tests.grader.scaffold import RIGHT, forward

SPECIMENS = ROOT / "tests" / "specimens"
WRONG_ON_GPU = "At [0, 1] the GPU returned 3."


@pytest.fixture(scope="module")
def on_cpu():
    """Grades a specimen on the CPU, once for all tests."""
    kept = {}

    def judge(name, problem):
        if name not in kept:
            path = KERNELS_REF / problem / "model.py"
            kept[name] = grade(SPECIMENS / f"{name}.py", path, device="cpu", seed=1)
        return kept[name]

    return judge


def on_gpu(reason=None, message=WRONG_ON_GPU, name=StageName.correct):
    """Return a stage of a run on a GPU: passed, or failed with this reason."""
    if reason is None:
        return Stage(name=name, status=Status.passed)
    return Stage(name=name, status=Status.failed, reason=reason, message=message, evidence=[Evidence(got=3.0)])


def combined(verdict, reason=None):
    """Return "correct" and "safe" of a GPU's run, correct or failed with the reason, beside a verdict on the CPU."""
    correct, safe = on_gpu(reason), on_gpu(name=StageName.safe)
    both.combine(correct, safe, verdict)
    return correct, safe


@pytest.mark.parametrize(
    "name, problem, reason",
    [
        ("bias_scale_sigmoid_missing_bounds_check", "bias_scale_sigmoid", Reason.out_of_bounds),
        pytest.param("groupnorm_missing_barrier", "groupnorm", Reason.race, marks=pytest.mark.slow),
        pytest.param(
            *("bias_scale_sigmoid_input_modified", "bias_scale_sigmoid", Reason.input_modified), marks=pytest.mark.slow
        ),
    ],
)
def test_what_only_the_checks_see_fails_a_file_that_is_right_on_the_gpu(on_cpu, name, problem, reason):
    verdict = on_cpu(name, problem)
    correct, safe = combined(verdict)
    assert correct.status is Status.passed
    assert (safe.status, safe.reason) == (Status.failed, reason)
    assert safe.message.endswith(both.GPU_IS_RIGHT)
    theirs = next(stage for stage in verdict.stages if stage.reason is reason)
    assert safe.evidence == theirs.evidence and safe.message.startswith(theirs.message)


@pytest.mark.slow
def test_wrong_values_on_both_have_the_cause_that_the_checks_name(on_cpu):
    verdict = on_cpu("groupnorm_missing_barrier", "groupnorm")
    correct, safe = combined(verdict, Reason.wrong_values)
    assert (correct.status, safe.reason) == (Status.failed, Reason.race)
    assert safe.evidence[0].line == verdict.stage("safe").evidence[0].line is not None
    assert both.GPU_IS_RIGHT not in safe.message


@pytest.mark.slow
def test_wrong_values_on_both_are_told_with_the_kernels_of_the_cpu(on_cpu):
    verdict = on_cpu("conv2d_bias_forgotten", "conv2d")
    theirs = verdict.stage("correct")
    correct, safe = combined(verdict, theirs.reason)
    assert correct.evidence == theirs.evidence and correct.evidence[0].launches and WRONG_ON_GPU not in correct.message
    assert safe.status is Status.passed


def test_an_address_that_the_gpu_refuses_has_the_line_that_the_cpu_names(on_cpu):
    verdict = on_cpu("bias_scale_sigmoid_missing_bounds_check", "bias_scale_sigmoid")
    correct, _ = combined(verdict, Reason.illegal_address)
    assert correct.reason is Reason.out_of_bounds and correct.evidence[0].line == verdict.first_problem.evidence[0].line
    assert correct.message.endswith(f"On the GPU: {WRONG_ON_GPU}")


def test_what_fails_on_the_gpu_alone_is_told_so(tmp_path, problem):
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    correct, safe = combined(grade(path, problem, device="cpu", seed=1), Reason.wrong_values)
    assert correct.message == f"{WRONG_ON_GPU} {both.CPU_IS_RIGHT}" and correct.evidence[0].got == 3
    assert safe.status is Status.passed


@pytest.mark.slow
def test_values_that_are_wrong_on_the_cpu_alone_do_not_fail_a_file(on_cpu):
    """Functions round differently on a CPU, and simt may be wrong: the GPU's word is taken, and both are told."""
    verdict = on_cpu("conv2d_bias_forgotten", "conv2d")
    correct, safe = combined(verdict)
    assert (correct.status, safe.status) == (Status.passed, Status.passed)
    assert safe.message.startswith("On the GPU the results are right, on the CPU they are not: ")
    assert verdict.stage("correct").message in safe.message


@pytest.mark.slow
def test_a_kernel_that_is_too_slow_for_the_cpu_is_not_failed(on_cpu):
    correct, safe = combined(on_cpu("groupnorm_endless_kernel", "groupnorm"))
    assert (correct.status, safe.status) == (Status.passed, Status.passed)
    assert safe.message.startswith("Not checked to the end on the CPU: ")


@pytest.mark.slow
def test_an_endless_kernel_has_the_name_that_the_cpu_gives_it(on_cpu):
    """On a GPU it is a call that does not end; the CPU knows that a kernel was running."""
    verdict = on_cpu("groupnorm_endless_kernel", "groupnorm")
    correct, _ = combined(verdict, Reason.timeout)
    assert correct.reason is Reason.kernel_timeout and correct.message.endswith(f"On the GPU: {WRONG_ON_GPU}")


@pytest.mark.slow
def test_a_right_run_on_the_cpu_says_nothing_of_memory(tmp_path, problem):
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    correct, _ = combined(grade(path, problem, device="cpu", seed=1), Reason.out_of_memory)
    assert correct.message == WRONG_ON_GPU


@pytest.mark.slow
def test_operators_in_place_of_kernels_fail_the_values(tmp_path):
    """Are the CPU's experiments on whose work the results are heeded? On a GPU the submission could hide it."""
    path = tmp_path / "groupnorm.py"
    path.write_text((KERNELS_REF / "groupnorm/model.py").read_text().replace("class Model(", "class ModelNew("))
    verdict = grade(path, KERNELS_REF / "groupnorm/model.py", device="cpu", seed=1)
    correct, safe = combined(verdict)
    assert (correct.status, correct.reason) == (Status.failed, Reason.no_kernel) and not safe.message


@pytest.mark.slow
def test_a_gradient_that_the_gpu_gets_right(on_cpu):
    verdict = on_cpu("conv2d_backward_out_of_bounds", "conv2d")
    gradient = on_gpu(name=StageName.gradient)
    both.combine_gradient(gradient, verdict.stage("gradient"))
    assert gradient.status is Status.failed and gradient.evidence == verdict.stage("gradient").evidence
    wrong = on_cpu("conv2d_backward_weight_transposed", "conv2d").stage("gradient")
    gradient = on_gpu(name=StageName.gradient)
    both.combine_gradient(gradient, wrong)
    assert gradient.status is Status.passed and wrong.message in gradient.message


def test_cases_that_either_run_failed_are_failed(on_cpu):
    verdict = on_cpu("bias_scale_sigmoid_missing_bounds_check", "bias_scale_sigmoid")
    theirs = {case.name: case.status for case in verdict.first_problem.cases}
    failed = next(name for name, status in theirs.items() if status is Status.failed)
    correct, safe = on_gpu(Reason.illegal_address), on_gpu(name=StageName.safe)
    correct.cases = [
        CaseResult(name=failed, status=Status.passed),
        CaseResult(name="full size", status=Status.failed, reason=Reason.illegal_address),
    ]
    both.combine(correct, safe, verdict)
    assert {case.name: case.status for case in correct.cases} == theirs | {"full size": Status.failed}


# --- a whole grading, which takes the CPU for a GPU when it starts the other one


@pytest.fixture
def twice(tmp_path, problem, monkeypatch):
    """Grades a source text twice at once."""
    settle = contract._settle_device

    def settle_and_begin(context):
        settle(context)
        monkeypatch.setattr(both, "_find_device", lambda: "H200")
        context.gpu = True
        both.begin(context, context.result(StageName.contract))
        context.gpu = False

    def judge(source):
        monkeypatch.setattr(contract, "_settle_device", settle_and_begin)
        path = tmp_path / "scaling.py"
        path.write_text(source)
        said = []
        verdict = grade(path, problem, device="cpu", seed=1, progress=lambda stage, text: said.append((stage, text)))
        return verdict, [one for one in said if "on the CPU: " in one[1]]

    yield judge
    beside._judges.close()
    beside._judges.open()


@pytest.mark.slow
def test_a_right_file_passes_both(twice):
    verdict, said = twice(RIGHT)
    assert verdict.outcome is Outcome.passed and not said


@pytest.mark.slow
def test_what_cannot_be_built_on_the_cpu_is_said(twice):
    """Is a file that the judge's other process alone cannot import graded, and is it told that no check was made?"""
    verdict, said = twice(
        "import os\nif os.environ.get('SIMT_DEVICE') == 'H200': raise OSError('no such part')\n" + RIGHT
    )
    assert verdict.outcome is Outcome.passed
    assert verdict.stage("safe").message.startswith("Not checked on the CPU: ")
    assert "no such part" in verdict.stage("safe").message and not said


@pytest.mark.slow
@pytest.mark.parametrize("source", [RIGHT, forward("return x * self.scale + 1")], ids=["right", "wrong"])
def test_what_a_grading_computed_is_gone_when_it_ends(twice, source, monkeypatch):
    """Is the memory of the expected outputs free at once, half a GPU's, before Python collects cycles?"""
    trials = []

    def note(*arguments):
        made = prepare_trial(*arguments)
        trials.append(weakref.ref(made))
        return made

    monkeypatch.setattr(context, "prepare_trial", note)
    gc.disable()
    try:
        twice(source)
        assert trials and not [trial for trial in trials if trial() is not None]
    finally:
        gc.enable()


@pytest.mark.parametrize("cores", [2, pytest.param(64, marks=pytest.mark.slow)])
def test_what_only_the_other_run_shows(twice, cores, monkeypatch):
    """Does it fail the file, and is nothing said of the stages after it, which may have been run before?"""
    monkeypatch.setattr(context.os, "cpu_count", lambda: cores)
    source = forward("if os.environ.get('SIMT_DEVICE') == 'H200': x.zero_()", "return x * self.scale")
    verdict, said = twice(source)
    assert verdict.outcome is Outcome.failed and verdict.stage("correct").status is Status.passed
    assert verdict.stage("safe").reason is Reason.input_modified
    assert all(verdict.stage(name).reason is Reason.not_reached for name in ("gradient", "fast"))
    assert not any(verdict.stage(name).cases for name in ("gradient", "fast"))
    assert said and said[0][0] is StageName.correct  # where the zeros were seen first
