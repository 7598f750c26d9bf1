"""Is a wrong CUDA kernel of a submission, run on the CPU, reported with its reason, line and thread?"""

import pytest

import simt
from grader.judging.grading import Refused
from grader.verdict import Outcome, Reason, StageName
from tests.grader.judging.submissions import many_cases
from tests.grader.scaffold import RIGHT, line_of

CUDA = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void scale_rows(const float* x, const float* s, float* y, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * s[i % width];
}

torch::Tensor run(torch::Tensor x, torch::Tensor s) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_rows<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1));
    return y;
}
"""

extension = load_inline("scaling_ext", "torch::Tensor run(torch::Tensor x, torch::Tensor s);", cuda, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return extension.run(x, self.scale)
'''


# The kernel's line for each number of rows: what is wrong with it, one build for all.
KERNELS = {
    "right": ("if (i < n) y[i] = x[i] * s[i % width];", None),
    "no bounds check": ("y[i] = x[i] * s[i % width];", Reason.out_of_bounds),
    "a barrier for some": ("if (threadIdx.x < 9) __syncthreads(); if (i < n) y[i] = x[i];", Reason.barrier_divergence),
    "too many threads": ("if (i < n) y[i] = x[i];", Reason.launch_error),
    "one not written": ("if (i < n - 1) y[i] = x[i] * s[i % width];", Reason.not_written),
}


def kernels() -> str:
    """CUDA with a kernel of its own for each number of rows."""
    head, body = CUDA.split("__global__")[0], CUDA.split("extension =")[1]
    made, calls = "", ""
    for n, (line, reason) in enumerate(KERNELS.values(), 1):
        made += f"__global__ void k{n}(const float* x, const float* s, float* y, int n, int width) {{\n"
        made += f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {line} // {n}\n}}\n"
        threads = 2048 if reason is Reason.launch_error else 128
        calls += f"    if (x.size(0) == {n}) k{n}<<<(n + 127) / 128, {threads}>>>"
        calls += "(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1));\n"
    run = "torch::Tensor run(torch::Tensor x, torch::Tensor s) {\n    auto y = torch::empty_like(x);\n"
    run += f"    int n = x.numel();\n{calls}    return y;\n}}\n"
    return head + made + run + '"""\n\nextension =' + body


@pytest.mark.slow
def test_each_wrong_kernel_is_told_by_its_reason(judged, tmp_path):
    verdict = judged(kernels(), problem=many_cases(tmp_path, list(KERNELS)))
    assert {c.name: c.reason for c in verdict.stage("correct").cases} == {n: r for n, (_, r) in KERNELS.items()}
    assert verdict.first_problem.evidence[0].line == line_of(kernels(), "// 2")
    assert verdict.first_problem.evidence[0].text in kernels()


@pytest.mark.slow
def test_a_read_out_of_bounds_is_the_reason_for_what_it_spreads(judged):
    """Is the reason out_of_bounds with its line, not not_written, where every output was written by a thread?"""
    source = CUDA.replace("x[i] * s[i % width];", "x[i] * s[i % width] + 0 * s[width];")
    verdict = judged(source)
    correct = verdict.stage("correct")
    assert (correct.reason, verdict.stage("safe").reason) == (Reason.out_of_bounds, Reason.out_of_bounds)
    assert {case.reason for case in correct.cases} == {Reason.out_of_bounds}
    assert correct.evidence[0].line == line_of(source, "s[width]") and "no thread wrote" not in correct.message
    assert correct.evidence[1].index is not None


def test_what_no_thread_wrote_stays_not_written(judged):
    verdict = judged(CUDA.replace("if (i < n) y[i]", "if (i < n - 1) y[i]"))
    assert verdict.reason is Reason.not_written and "no thread wrote" in verdict.stage("correct").message


RENAMED = "Where names differ, the grader matches weights by shape"


@pytest.mark.slow
def test_weights_matched_by_shape_are_named_only_where_they_may_explain(judged):
    """Is the sentence on renamed weights given with wrong values, and not with NaN or values that a check explains?"""
    renamed = CUDA.replace("self.scale", "self.factor")
    wrong = "x[i] * s[i % width]"
    assert RENAMED in judged(renamed.replace(wrong, f"{wrong} + 1")).stage("correct").message
    assert RENAMED not in judged(renamed.replace(wrong, f"{wrong} / 0.0f * 0.0f")).stage("correct").message
    shared = "__shared__ float t[128]; t[threadIdx.x] = i < n ? x[i] : 0; if (i < n) y[i] = t[(threadIdx.x + 1) % 128];"
    racing = judged(renamed.replace("if (i < n) y[i] = x[i] * s[i % width];", shared))
    assert racing.stage("safe").reason is Reason.race and RENAMED not in racing.stage("correct").message


@pytest.mark.slow
def test_a_compile_error_is_told_by_the_line_of_the_file(judged):
    source = CUDA.replace("s[i % width];", "s[i % width] * z;")
    verdict = judged(source)
    assert (verdict.first_problem.name, verdict.reason) == (StageName.build, Reason.compile_error)
    assert verdict.first_problem.evidence[0].line == line_of(source, "s[i % width]")


@pytest.mark.slow
def test_the_launches_of_the_failing_call_are_in_the_evidence(judged):
    """Of two kernels, launched once a call, are both told with their grids and blocks, in order, and those of the
    failing case alone?
    """
    first = "    scale_rows<<<(n + 127) / 128, 128>>>"
    more = (
        "    scale_rows<<<dim3(1, 2, 3), dim3(4, 5, 6)>>>(x.data_ptr<float>(), s.data_ptr<float>(), "
        "y.data_ptr<float>(), 0, 1);\n"
    )
    assert first in CUDA
    verdict = judged(
        CUDA.replace(first, more + first).replace("x[i] * s[i % width];", "x[i] * s[i % width] + (n > 6);")
    )
    (evidence,) = verdict.stage("correct").evidence
    assert (verdict.reason, evidence.case) == (Reason.wrong_values, "wide")
    assert {one.kernel for one in evidence.launches} == {"scale_rows"}
    assert [(one.grid, one.block) for one in evidence.launches] == [((1, 2, 3), (4, 5, 6)), ((1, 1, 1), (128, 1, 1))]


@pytest.mark.slow
def test_a_misaligned_access_that_stops_the_kernel_is_told_with_its_address(judged):
    """The processor tells no address of a float4 that is copied whole: is the sentence the checks' one, with the
    numbers?
    """
    line = "if (i < n) y[i] = x[i] * s[i % width];"
    verdict = judged(CUDA.replace(line, f"{line} if (i == 0) *(float4*)(y + 1) = *(const float4*)(x + 2);"))
    assert (verdict.first_problem.name, verdict.reason) == (StageName.correct, Reason.misaligned)
    said = verdict.first_problem.message
    assert "16 bytes at once of `" in said and (
        "It begins at byte 8 of 24, 8 bytes past" in said or "It begins at byte 4 of 24, 4 bytes past" in said
    )


@pytest.mark.parametrize(
    "error, outcome",
    [
        (simt.CacheError("The folder is full: set SIMT_CACHE."), "error"),
        (ValueError("SIMT_THREADS is 'x'."), "refused"),
    ],
)
def test_a_machine_that_cannot_build_is_told_at_once(monkeypatch, judged, error, outcome):
    """Does what no submission can build with end the grading with its sentence, before the worker compiles everything
    again?
    """

    def fail():
        raise error

    monkeypatch.setattr(simt, "warm_up", fail)
    monkeypatch.setattr("grader.worker.client.Client.ask", lambda *_: pytest.fail("the worker was asked to build"))
    if outcome == "refused":
        with pytest.raises(Refused, match="SIMT_THREADS is 'x'"):
            judged(RIGHT)
        return
    verdict = judged(RIGHT)
    assert (verdict.outcome, verdict.reason) == (Outcome.error, Reason.grader_error)
    assert verdict.first_problem.name is StageName.build and verdict.first_problem.message == str(error)


@pytest.mark.slow
def test_a_write_beside_a_tensor_is_told_with_its_thread(judged):
    """A plain run sees the bytes beside a tensor changed after the launch: is the sentence the checks' one, with the
    kernel's line?
    """
    source = CUDA.replace(
        "if (i < n) y[i] = x[i] * s[i % width];", "if (i <= n) y[i] = s[i % width] * (i < n ? x[i] : 0.f);  // here"
    )
    verdict = judged(source)
    (evidence,) = verdict.first_problem.evidence
    assert (verdict.first_problem.name, verdict.reason) == (StageName.correct, Reason.out_of_bounds)
    assert (evidence.thread, evidence.block, evidence.line) == ([6, 0, 0], [0, 0, 0], line_of(source, "// here"))
    assert "writes element 6 of `y`" in verdict.first_problem.message
    assert [case.reason for case in verdict.stage("correct").cases] == [Reason.out_of_bounds] * 2


@pytest.mark.slow
def test_a_missing_barrier_is_a_race(judged):
    racing = CUDA.replace(
        "if (i < n) y[i] = x[i] * s[i % width];",
        "__shared__ float t[128]; if (i < n) t[threadIdx.x] = x[i]; "
        "int j = threadIdx.x ? threadIdx.x - 1 : 0; if (i < n) y[i] = x[i] * s[i % width] + 0.f * t[j];",
    )
    verdict = judged(racing)
    assert verdict.stage("safe").reason is Reason.race
    assert "t[j]" in verdict.stage("safe").evidence[0].text
