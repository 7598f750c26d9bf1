"""A small solution with two exercises, its skeleton, and a folder tree that holds it in place of the real ones."""

import pytest

from grader.authoring import handout
from grader.problems import exercises
from grader.problems.skeletons import skeleton

SOLUTION = '''"""double_it: one thread an element.

y[i] = 2 * x[i]
"""

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void double_it(const float* x, float* y, int n) {
    // >>> exercise: find this thread's element; double it (about 2 lines)
    const int i = blockIdx.x * blockDim.x + threadIdx.x;  // one thread an element
    if (i < n) y[i] = 2 * x[i];
    // <<<
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        # >>> exercise: launch the kernel (about 1 line)
        return kernels.double_it(x)
        # <<<
'''
MADE = skeleton(SOLUTION, "double_it")


@pytest.fixture(name="house")
def make_house(tmp_path, monkeypatch):
    """A kernels_ref with one solution and an empty kernels_student, in place of the real ones."""
    monkeypatch.setattr(exercises, "KERNELS_REF", tmp_path / "kernels_ref")
    monkeypatch.setattr(exercises, "KERNELS_STUDENT", tmp_path / "kernels_student")
    (tmp_path / "kernels_ref" / "double_it").mkdir(parents=True)
    (tmp_path / "kernels_ref" / "double_it" / "solution.py").write_text(SOLUTION)
    return tmp_path


@pytest.fixture(name="handout")
def make_handout(house):
    """The same as it is handed out: with an exercise for gradients, and without the solutions."""
    folder = house / "kernels_ref" / "double_it"
    (folder / "model.py").write_text("")
    (folder / "backward.py").write_text(SOLUTION.replace("2 * x[i]", "x[i] / 2"))
    handout.write_all()
    for name in ("solution.py", "backward.py"):
        (folder / name).unlink()
    return house
