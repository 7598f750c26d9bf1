"""Is the time of a right submission predicted at full size where there is no GPU, and never taken for a measurement?"""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import torch

from grader.judging import both, full_size, prediction, worker_process
from grader.judging.grading import grade
from grader.judging.prediction import list_rungs
from grader.judging.trial import Finding
from grader.notebook import check, spare_worker
from grader.paths import KERNELS_REF, ROOT
from grader.problems import ladders
from grader.reports import feedback, predicted
from grader.verdict import (
    NOT_IN_TIME,
    TIMED,
    Measurement,
    Outcome,
    Reason,
    Rung,
    Stage,
    StageName,
    Status,
    from_json,
    to_json,
)
from simt.counting.time_model import GPUS, predict
from simt.toolchain import build

SCALING = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

declaration = "torch::Tensor scale(torch::Tensor x, torch::Tensor factor);"
source = r"""
__global__ void scale_kernel(const float* x, const float* factor, float* y, int features, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor[i % features];
}
torch::Tensor scale(torch::Tensor x, torch::Tensor factor) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), factor.data_ptr<float>(), y.data_ptr<float>(),
                                           x.size(1), n);
    return y;
}
"""
kernels = load_inline("prediction_scale", cpp_sources=declaration, cuda_sources=source, functions=["scale"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        HERE
        return kernels.scale(x, self.scale)
'''
# The same, but a row's place comes from another kernel.
PLACING = (
    SCALING.replace(
        "__global__",
        """__global__ void place_kernel(int* places, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) places[row] = row;
}
__global__""",
    )
    .replace("float* y, int features", "float* y, const int* places, int features")
    .replace("y[i] =", "y[(int64_t)places[i / features] * features + i % features] =")
    .replace(
        "    scale_kernel<",
        """    auto places = torch::empty({x.size(0)}, x.options().dtype(torch::kInt32));
    place_kernel<<<(x.size(0) + 255) / 256, 256>>>(places.data_ptr<int>(), x.size(0));
    scale_kernel<""",
    )
    .replace("y.data_ptr<float>(),", "y.data_ptr<float>(), places.data_ptr<int>(),")
    .replace("prediction_scale", "prediction_place")
)
PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * self.scale

batch_size = 1 << 18
features = 1024

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features]

CASES = [{"name": "wide", "set": {"batch_size": 3, "features": 37}, "inputs": "normal"}]
"""
FULL = [[1 << 18, 1024]]


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """Grades SCALING with a line before its last, for a problem whose one case is small."""
    folder = tmp_path_factory.mktemp("prediction")
    (folder / "scaling.py").write_text(PROBLEM)

    def judged(line="pass", gpu="H200", source=SCALING):
        (folder / "mine.py").write_text(source.replace("HERE", line))
        return grade(folder / "mine.py", folder / "scaling.py", device="cpu", seed=1, predict=gpu)

    return judged


@pytest.fixture(scope="module")
def right(judge):
    return judge()


def test_it_is_predicted_and_not_measured(right):
    """Is a right submission's stage "fast" skipped, with a prediction at full size and no measurement?"""
    stage = right.stage("fast")
    assert right.outcome is Outcome.passed
    assert (stage.status, stage.reason, stage.measurements) == (Status.skipped, Reason.no_gpu, [])
    made = stage.prediction
    assert (made.gpu, made.sizes, made.rungs) == ("H200", FULL, [])
    assert 0 < made.bound_ms < made.ms and made.low < made.ms < made.high
    assert [(one.kernel, one.grid, one.times) for one in made.launches] == [("scale_kernel", [1 << 20, 1, 1], 1)]
    assert from_json(to_json(right)) == right


def test_it_is_what_the_bytes_take(right):
    """Is the time above what the datasheet's bandwidth gives, and near it although a million blocks must start?"""
    made = right.stage("fast").prediction
    least = 1e3 * 2 * 4 * (1 << 28) / GPUS["H200"].dram
    assert made.bound_ms == pytest.approx(least, rel=1e-3)
    assert least < made.ms < 2.5 * least and "1,048,576 blocks do little each" in made.advice


@pytest.mark.slow
def test_another_gpu(judge):
    """Is the time of a GPU with a fifteenth of the bandwidth about fifteen times as long?"""
    made = judge(gpu="T4").stage("fast").prediction
    assert made.gpu == "T4" and made.ms == pytest.approx(1e3 * 2 * 4 * (1 << 28) / GPUS["T4"].dram, rel=0.3)


@pytest.mark.slow
def test_without_it(judge):
    """Is nothing predicted unless it is asked for?"""
    stage = judge(gpu=None).stage("fast")
    assert (stage.status, stage.prediction) == (Status.skipped, None) and "predicted" not in stage.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("if x.shape[0] > 1000: raise ValueError('too many rows')", "too many rows"),
        ("if x.shape[0] > 1000: import time; time.sleep(60)", f"{NOT_IN_TIME}: one forward"),
        ("if x.shape[0] > 1000: import os; os.kill(os.getpid(), 9)", "killed"),
        ("if x.shape[0] > 1000: x = torch.empty(1 << 44)", "memory"),
        ("if x.shape[0] > 1000: return x", "no kernel was launched at full size."),
        ("if x.shape[0] > 1000: [kernels.scale(x[:2 + i], self.scale) for i in range(100)]", "were not counted."),
    ],
)
def test_what_fails_at_full_size_alone(judge, line, why):
    """Does a submission still pass that cannot be counted, with one sentence that says why?"""
    verdict = judge(line)
    stage = verdict.stage("fast")
    assert verdict.outcome is Outcome.passed and stage.prediction is None
    assert "No time is predicted: " in stage.message and why in stage.message
    assert spare_worker.keepable(verdict) == (NOT_IN_TIME not in why)  # another check may have more time


def test_places_that_another_kernel_writes(judge):
    """Is a kernel predicted whose addresses another one has computed, of which only some blocks run? (The memory of
    their places had other values before.)
    """
    before = "[torch.full((x.shape[0],), 1 << 30, dtype=torch.int32) for _ in range(9)]"
    stage = judge(before, source=PLACING).stage("fast")
    assert stage.prediction is not None, stage.message
    assert [one.kernel for one in stage.prediction.launches] == ["place_kernel", "scale_kernel"]


LIES = {
    "endless": "[math.inf]",
    "no number": "[math.nan]",
    "negative": "[-1.0]",
    "text": "['many']",
    "no list": "7",
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_lies(judge, lie):
    """Does a worker whose counters make no sense get no prediction, and nothing else?"""
    patch = (
        "import math\nfrom grader.worker import tallies\n"
        "def lie(report):\n"
        "    made = describe(report)\n"
        f"    made.launches[0].work['loads'] = ({LIES[lie]})[0] if {lie != 'no list'} else {LIES[lie]}\n"
        f"    if {lie == 'no list'}: made.launches = 7\n"
        "    return made\n"
        "describe, tallies.describe = tallies.describe, lie\n"
    )
    verdict = judge(source=patch + SCALING)
    stage = verdict.stage("fast")
    assert stage.prediction is None and stage.status is Status.skipped
    assert "No time is predicted: " in stage.message


@pytest.mark.slow
def test_a_claimed_time_stays_a_claim(judge):
    """Is a time that a worker made up nothing but a prediction, within what a number can be?"""
    patch = (
        "from grader.worker import tallies\n"
        "def lie(report):\n"
        "    made = describe(report)\n"
        "    made.launches[0].work = {}\n"
        "    made.launches[0].mix = {'fp32_fma': 1e30, 'no such': 1e30}\n"
        "    return made\n"
        "describe, tallies.describe = tallies.describe, lie\n"
    )
    stage = judge(source=patch + SCALING).stage("fast")
    assert stage.measurements == [] and stage.status is Status.skipped
    assert stage.prediction is None or math.isfinite(stage.prediction.ms)


@pytest.mark.slow
def test_a_size_beyond_the_machine(judge, tmp_path):
    """Is a problem of 32 GB predicted from parts of its batch, as what 16 times the bytes of 2 GB take?"""
    (tmp_path / "scaling.py").write_text(PROBLEM.replace("1 << 18", "4194304"))
    (tmp_path / "mine.py").write_text(SCALING.replace("HERE", "pass"))
    verdict = grade(tmp_path / "mine.py", tmp_path / "scaling.py", device="cpu", seed=1, predict="T4")
    made = verdict.stage("fast").prediction
    assert made is not None and made.sizes == [[1 << 22, 1024]]
    assert made.launches[0].grid == [1 << 24, 1, 1]
    assert made.ms == pytest.approx(1e3 * 2 * 4 * (1 << 32) / GPUS["T4"].dram, rel=0.3)


# ---- the ladder ----


@pytest.mark.parametrize(
    ("inputs", "outputs", "drawn"),
    [
        ([(2**26, torch.float32)], [(2**26, torch.float32)], False),
        ([(2**26, torch.float32)], [(256, torch.int32)], True),
        ([(2**26, torch.float32)], [(256, torch.int32), (4, torch.float32)], False),
        ([(2**27, torch.float32)], [(256, torch.int32)], False),
        ([(2**20, torch.float32)], [(2**20, torch.float32)], True),
        ([(2**27, torch.int32)], [(2**20, torch.float32)], True),
        ([(2**26, torch.float32)], [], False),
    ],
)
def test_inputs_whose_values_decide_what_is_done_are_drawn(inputs, outputs, drawn):
    """Do small inputs, indices, and inputs whose outputs are whole numbers get values?"""
    made = [[torch.empty(size, dtype=dtype, device="meta") for size, dtype in each] for each in (inputs, outputs)]
    assert full_size.is_drawn(*made) is drawn


@pytest.mark.slow
@pytest.mark.skipif(not (KERNELS_REF / "logsumexp" / "solution.py").is_file(), reason="this copy has no solutions")
def test_a_reference_is_placed_on_its_ladder():
    """Is the reference predicted as when it was counted for the ladder, between the steps?"""
    verdict = grade(KERNELS_REF / "logsumexp" / "solution.py", device="cpu", seed=1, predict="H200")
    made = verdict.stage("fast").prediction
    assert made is not None
    times = {rung.name: (rung.predicted or 0.0, rung.measured or 0.0) for rung in made.rungs}
    assert times["reference"][0] == pytest.approx(made.ms, rel=0.02)
    assert times["01_block_a_pixel"][0] > made.ms > times["04_float4"][0]
    assert times["eager"][1] > 0 and times["eager"][0] == 0
    rows = predicted.list_rows(made)
    assert [row[0] for row in rows if row[0] == predicted.HERE] and rows[0][0] == "step 01_block_a_pixel"


@pytest.mark.slow
@pytest.mark.skipif(not (KERNELS_REF / "logsumexp" / "solution.py").is_file(), reason="this copy has no solutions")
def test_backward_is_predicted_with_forward(tmp_path):
    """Is the time of a NAME_backward that of its forward and its backward, beside those of other files with both?"""
    file = tmp_path / "logsumexp_backward.py"
    file.write_text((KERNELS_REF / "logsumexp" / "backward.py").read_text())
    verdict = grade(file, KERNELS_REF / "logsumexp" / "model.py", device="cpu", seed=1, predict="H200")
    made = verdict.stage("fast").prediction
    assert made is not None and made.backward
    reference = next(rung for rung in made.rungs if rung.kind == "reference")
    assert reference.predicted == pytest.approx(made.ms, rel=0.02)
    assert {one.kernel for one in made.launches} == {"logsumexp_kernel", "logsumexp_backward_kernel"}
    assert 1.5 < made.ms / made.launches[0].ms < 4 and "forward and backward" in predicted.describe(made)


def test_no_rung_is_below_the_bound():
    """Is a rung left without a prediction that would be faster than its bytes allow, and kept where it was measured?"""
    bound = 1e3 * 2 * 4 * 112 * 64 * 512 * 512 / GPUS["H200"].dram
    rungs = {rung.name: rung for rung in list_rungs("groupnorm", [[112, 64, 512, 512]], "H200", bound)}
    assert all(rung.predicted is None or rung.predicted >= bound for rung in rungs.values())
    assert rungs["fastest"].measured and rungs["reference"].predicted


def test_ladders_are_of_these_files():
    """Was every step, reference and fastest file counted as it is now?"""
    from benchmarks.publish import ladders as script

    assert script.list_stale() == []


MEASURED_STEPS = {
    f"{name}/{rung.name}": rung
    for name, ladder in ladders.read_all().problems.items()
    for rung in ladder.rungs
    if rung.kind == "step" and "H200" in rung.measured
}


@pytest.mark.parametrize("name", MEASURED_STEPS)
def test_ladders_are_near_the_measured_times(name):
    """Are the steps' predictions those of MODEL.md's table: within a factor of 2.5 of the measured times?"""
    rung = MEASURED_STEPS[name]
    seconds = sum(one.times * predict(one.make_work()).seconds for one in rung.launches)
    assert 0.4 < 1e3 * seconds / rung.measured["H200"] < 2.5


# ---- words ----


def test_terminal_and_notebook_say_the_same(right, capsys):
    """Does a terminal print every word about the prediction that a notebook shows?"""
    from rich.console import Console

    from grader.reports import terminal

    terminal.show(Console(width=200, highlight=False), right)
    printed = " ".join(capsys.readouterr().out.split())
    shown = feedback.as_text(feedback.verdict_parts(right, SCALING, []))
    told = shown[shown.index("Predicted on the H200") :]
    for line in filter(None, map(str.strip, told.splitlines())):
        assert " ".join(line.replace("`", "").split()) in printed
    assert "not measured" in told and "262,144×1,024" in told


@pytest.mark.parametrize(
    ("where", "words"),
    [("within", "Nine in ten"), ("above", "takes longer than its counters"), ("below", "is faster than its counters")],
)
def test_a_measured_time_is_told_next_to_the_predicted_one(right, where, words):
    """On a GPU, are both times shown, in the words, the table and the picture, and how they compare?"""
    fast = right.stage("fast")
    made = msgspec.structs.replace(
        fast.prediction, rungs=[Rung(name="1_slow", kind="step", predicted=9.0, measured=8.0)]
    )
    time = {"within": made.ms, "above": 1.1 * made.high, "below": 0.9 * made.low}[where]
    timed = Stage(name=fast.name, status=Status.passed, prediction=made)
    timed.measurements = [
        Measurement(name="eager", value=1.0, unit="ms"),
        Measurement(name=TIMED, value=time, unit="ms"),
    ]
    verdict = msgspec.structs.replace(right, stages=[*right.stages[:-1], timed], device="NVIDIA H200")
    told = feedback.as_text(predicted.tell(verdict, lambda number: f"line {number}"))
    assert f"measured: {predicted.show_time(time)}, for one forward" in told and words in told
    assert "not measured" not in told
    assert (predicted.HERE, predicted.show_time(made.ms), predicted.show_time(time), "") in predicted.list_rows(
        made, time
    )
    (drawn,) = check._pictures(verdict)
    assert "predicted" not in drawn.alt and predicted.show_time(time) in drawn.alt


def test_the_cpus_prediction_is_put_beside_what_a_gpu_measured(right):
    """Is the time that the run on the CPU predicts taken over, and by a measured stage alone?"""
    context = SimpleNamespace(
        beside=SimpleNamespace(wait_for_end=lambda: right), source=SimpleNamespace(sha256=right.submission.sha256)
    )
    timed = Stage(name=StageName.fast, status=Status.passed)
    both.join_fast(cast(Any, context), timed)
    assert timed.prediction is None
    timed.measurements = [Measurement(name=TIMED, value=1.0, unit="ms")]
    both.join_fast(cast(Any, context), timed)
    assert timed.prediction == right.stage("fast").prediction is not None


def test_a_failed_submission_is_not_predicted(judge):
    """Is nothing predicted of a submission whose values are wrong?"""
    verdict = judge("return kernels.scale(x, self.scale) + 1")
    assert verdict.outcome is Outcome.failed and verdict.stage("fast").prediction is None
    assert "predict" not in json.dumps(json.loads(to_json(verdict))["stages"])


def test_the_package_has_the_ladders():
    """Do the ladders lie in the package, without a line of code in them?"""
    text = ladders.DATA.read_text()
    assert ladders.DATA.is_relative_to(ROOT / "grader") and "__global__" not in text and "load_inline" not in text


# ---- what an attack found ----


@pytest.mark.slow
@pytest.mark.parametrize(
    "buffer",
    [
        "self.bn = nn.BatchNorm1d(features)",
        "self.register_buffer('order', torch.randperm(features))",
        "self.register_buffer('mask', torch.ones(features, dtype=torch.bool))",
    ],
)
def test_buffers_that_are_no_floats(judge, tmp_path, buffer):
    """Is a right submission predicted where Model has a buffer of integers or of booleans?"""
    named = "self.scale = nn.Parameter(torch.ones(features))"
    (tmp_path / "scaling.py").write_text(PROBLEM.replace(named, f"{named}\n        {buffer}"))
    (tmp_path / "mine.py").write_text(SCALING.replace("HERE", "pass").replace(named, f"{named}\n        {buffer}"))
    verdict = grade(tmp_path / "mine.py", tmp_path / "scaling.py", device="cpu", seed=1, predict="H200")
    assert verdict.outcome is Outcome.passed and verdict.stage("fast").prediction is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x = x if x.shape[0] < 1000 else torch.sort(x[:1 << 15])[0].repeat(8, 1)", "PyTorch's own operators (sort)"),
        ("x = x if x.shape[0] < 1000 else x[:1000]", "only a part of the inputs and outputs."),
    ],
)
def test_what_is_not_the_kernels_work_at_full_size(judge, line, why):
    """Is nothing predicted where operators compute a part, or where kernels leave most of the data out?"""
    stage = judge(line).stage("fast")
    assert stage.prediction is None and "No time is predicted: " in stage.message and why in stage.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "moving"),
    [("pass", []), ("x.new_zeros(x.shape)", ["zero_"]), ("torch.zeros(1)", []), ("x.clone()", ["copy_"])],
)
def test_what_pytorch_moves_is_named(judge, line, moving):
    """Is it said that PyTorch fills or copies as much memory as an input has, and that its time is left out?"""
    verdict = judge(line)
    found = predicted.find(verdict)
    assert found is not None and found[1].moving == moving
    words = feedback.as_text(predicted.tell(verdict, lambda n: f"line {n}"))
    assert all(f"Not in this time: what PyTorch's own `{name}` takes" in words for name in moving)
    assert ("Not in this time" in words) is bool(moving) and ("empty_like" in words) is ("zero_" in moving)


@pytest.mark.slow
def test_a_wait_for_the_gpu_is_named(judge, right):
    """Is it said that the CPU waits for the GPU, with the line and what to do, and nothing of it where it does not?"""

    def tell(verdict):
        return feedback.as_text(predicted.tell(verdict, lambda n: f"line {n}"))

    assert "wait for the GPU" not in tell(right)
    waiting = SCALING.replace("HERE", "pass").replace(
        "    return y;\n", "    cudaDeviceSynchronize();\n    return y;\n"
    )
    line = waiting.splitlines().index("    cudaDeviceSynchronize();") + 1
    words = tell(judge(source=waiting))
    assert f"In line {line}, `cudaDeviceSynchronize()` makes the CPU wait for the GPU in each call" in words
    assert "Remove the call" in words and "Remove the call" not in tell(right)


def test_advice_is_told_in_whole_sentences(right):
    """Does the text on what to try next name the line and have at most one colon before what is predicted?"""
    made = right.stage("fast").prediction
    made = msgspec.structs.replace(
        made, advice="In `k`, a request takes 2 wavefronts. Pad the rows (predicted: 2 times)."
    )
    placed = msgspec.structs.replace(made, advice_line=49)
    assert predicted.describe_advice(placed, lambda n: f"line {n}") == f"Look at line 49 next. {made.advice}"
    words = predicted.describe_advice(made, lambda n: f"line {n}")
    assert words.startswith("What to try next: in `k`, a request") and words.partition("(")[0].count(":") == 1


def test_measured_times_are_not_ranked_with_predicted_ones(right):
    """Do rungs that were only measured stand last, without a factor?"""
    made = right.stage("fast").prediction
    assert made is not None
    rungs = [Rung(name="slow", kind="step", predicted=9.0), Rung(name="eager", kind="eager", measured=0.01)]
    rows = predicted.list_rows(msgspec.structs.replace(made, rungs=rungs))
    assert [row[0] for row in rows] == ["step slow", predicted.HERE, "eager"] and rows[-1][-1] == ""


def test_a_pass_names_a_target_and_another_way(right):
    """Is a step that is not clearly faster left out, and are the next and the fastest one named with their ideas, on a
    GPU too where the last step is not the fastest?
    """
    made = right.stage("fast").prediction
    assert made is not None
    rungs = [
        Rung(name=name, kind="step", predicted=share * made.ms, idea=f"idea of {name}")
        for name, share in {
            "1_slow": 3.0,
            "2_alike": 0.95,
            "3_next": 0.8,
            "4_between": 0.6,
            "5_fastest": 0.5,
            "6": 0.7,
        }.items()
    ]
    lines = predicted.describe_faster(msgspec.structs.replace(made, rungs=rungs))
    assert [line.rpartition(": ")[2] for line in lines] == ["idea of 3_next.", "idea of 5_fastest."]
    assert lines[0].startswith(f"Optional target: {predicted.show_time(0.8 * made.ms)}, as step 3_next")
    assert not predicted.describe_faster(msgspec.structs.replace(made, rungs=rungs[:2]))


@pytest.mark.parametrize("reason", [Reason.timeout, Reason.kernel_timeout])
def test_a_launch_that_takes_too_long_to_count_is_not_called_endless(reason):
    """Does the sentence blame the time that there is, and not a loop?"""
    words = prediction._explain(Finding(reason, "It did not end within 20 s: look for a loop that never ends.", []))
    assert words.startswith(NOT_IN_TIME) and "never ends:" not in words and "loop that" not in words


def test_no_kernel_of_nine_in_ten_is_faster_than_memory(right):
    """Does the interval begin at what the bytes of inputs and outputs take, at the earliest?"""
    made = right.stage("fast").prediction
    assert made.bound_ms <= made.low * 1.001 and made.low <= made.ms


@pytest.mark.parametrize("gpu", ["H200", None])
def test_the_header_for_counting_is_compiled_once_for_all(monkeypatch, gpu):
    """Is it in the cache before a worker starts that cannot write there, and would compile its own each time?"""
    compiled = []
    monkeypatch.setattr(build, "is_warm", lambda text, modes: False)
    monkeypatch.setattr(build, "warm_up", lambda text, modes: compiled.extend(modes))
    request = SimpleNamespace(predict=gpu, problem_path=None, path=Path("mine.py"), folder=None)
    worker_process._fill_cache(cast(Any, request), "", lambda *words: None)
    assert compiled == ["plain", "check", *(["count"] if gpu else [])]
