"""Does a submission get the inputs with the strides that the problem's get_inputs() gives them, in every run?"""

import pytest

from grader.judging.grading import Limits, grade
from grader.verdict import Outcome, Reason, Status

PROBLEM = """
import torch

n, m = 30, 20

class Model(torch.nn.Module):
    def forward(self, turned, repeated, spaced):
        return turned * repeated + spaced

def get_inputs():
    return [torch.rand(n, m).T, torch.rand(m, 1).expand(m, n), torch.rand(m, 2 * n)[:, ::2]]

def get_init_inputs():
    return []
"""
CASES = """
CASES = [
    {"name": "own values"},
    {"name": "other values", "set": {"n": 5, "m": 7}, "inputs": "normal"},
]
"""
RIGHT = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, turned, repeated, spaced):
        m, n = turned.shape
        given = [value.stride() for value in (turned, repeated, spaced)]
        made = [torch.empty(n, m).T, torch.empty(m, 1).expand(m, n), torch.empty(m, 2 * n)[:, ::2]]
        if given != [value.stride() for value in made]:
            raise ValueError(f"{tuple(turned.shape)}: {given}")
        return turned * repeated + spaced
"""
KERNEL = """
import torch
from torch.utils.cpp_extension import load_inline

source = r'''
struct View { const float* data; int64_t rows, columns; };
__global__ void combine(View a, View b, View c, float* out, int m, int n) {
  int i = blockIdx.x, j = threadIdx.x;
  if (j < n) out[i * n + j] = a.data[i * A_ROWS + j * A_COLUMNS] * b.data[i * b.rows + j * b.columns]
                              + c.data[i * c.rows + j * c.columns];
}
View view(torch::Tensor x) { return {x.data_ptr<float>(), x.stride(0), x.stride(1)}; }
torch::Tensor run(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
  int m = a.size(0), n = a.size(1);
  auto out = torch::empty({m, n}, a.options());
  combine<<<m, 256>>>(view(a), view(b), view(c), out.data_ptr<float>(), m, n);
  return out;
}
'''
declaration = "torch::Tensor run(torch::Tensor a, torch::Tensor b, torch::Tensor c);"
run = load_inline("combine", declaration, source, functions=["run"]).run

class ModelNew(torch.nn.Module):
    def forward(self, *inputs):
        return run(*inputs)
"""


def judge(tmp_path, source: str, cases: str, text: str = PROBLEM, device: str = "cpu"):
    problem, path = tmp_path / "strided.py", tmp_path / "handed_in.py"
    problem.write_text(text + cases)
    path.write_text(source)
    verdict = grade(path, problem, device=device, seed=1, limits=Limits(own=60.0))
    print(*(f"{stage.name}: {stage.message}" for stage in verdict.stages if stage.message), sep="\n")
    return verdict


@pytest.mark.parametrize(
    "cases", [pytest.param(CASES, id="declared", marks=pytest.mark.slow), pytest.param("", id="made")]
)
def test_every_run_has_the_strides_of_the_file(tmp_path, cases):
    """Also those with gradients, with checks, in reverse order, and at sizes that the grader chose?"""
    verdict = judge(tmp_path, RIGHT, cases)
    assert verdict.outcome is Outcome.passed and verdict.stage("gradient").status is Status.passed
    assert len(verdict.stage("correct").cases) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_kernel_reads_memory_as_the_file_lays_it_out(tmp_path, device):
    """Does a kernel pass that knows the layout of an input, and fail in every case if it takes it for contiguous?"""
    knows = KERNEL.replace("A_ROWS", "1").replace("A_COLUMNS", "m")
    verdict = judge(tmp_path, knows, CASES, device=device)
    assert verdict.outcome is Outcome.passed
    assumes = KERNEL.replace("A_ROWS", "n").replace("A_COLUMNS", "1")
    correct = judge(tmp_path, assumes, CASES, device=device).stage("correct")
    assert correct.reason is Reason.wrong_values
    assert {case.status for case in correct.cases} == {Status.failed}


def test_the_report_of_wrong_values_names_the_inputs_that_are_not_contiguous(tmp_path):
    message = judge(tmp_path, RIGHT.replace("+ spaced", "- spaced"), CASES).stage("correct").message
    assert "`turned` has the strides (1, 20), `repeated` has the strides (1, 0)" in message
    contiguous = "return [torch.rand(m, n), torch.rand(m, n), torch.rand(m, n)]"
    plain = PROBLEM[: PROBLEM.index("    return [torch.rand")] + f"    {contiguous}\n"
    plain += "def get_init_inputs():\n    return []\n"
    wrong = RIGHT.replace("if given", "if False and given").replace("+ spaced", "- spaced")
    assert "strides" not in judge(tmp_path, wrong, CASES, plain).stage("correct").message
