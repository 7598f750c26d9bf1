"""grader.profile, grader.compare and %%cuda: do they show the numbers that follow from the code, and say what is wrong
with a cell?
"""

import copy
import dataclasses
import textwrap

import pytest
import torch
from IPython.core.error import UsageError

import grader
from grader.notebook import check, magic
from grader.notebook import profile as profiling
from grader.paths import KERNELS_REF
from grader.reports import feedback
from grader.verdict import EXPLANATIONS, Reason

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are counted on the CPU")

MODEL = """
import torch
batch_size = 1024
width = 4096
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(batch_size, width)]
def get_init_inputs():
    return []
"""
SUBMISSION = '''
import torch
from torch.utils.cpp_extension import load_inline
source = """
__global__ void add_one(const float* x, float* y, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = (int64_t)i * STRIDE % n;
    if (i < n) y[j] = x[j] + 1.0f;
}
torch::Tensor add(torch::Tensor x) {
    auto y = torch::empty_like(x);
    add_one<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), 1);
    return y;
}
"""
kernels = load_inline(name="add_STRIDE", cpp_sources="torch::Tensor add(torch::Tensor x);", \
cuda_sources=source, functions=["add"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return kernels.add(x)
'''


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """The same addition, thread i on element i, and on element 33 i modulo n."""
    folder = tmp_path_factory.mktemp("profile")
    (folder / "model.py").write_text(MODEL)
    made = []
    for stride in (1, 33):
        file = folder / f"stride{stride}.py"
        file.write_text(SUBMISSION.replace("STRIDE", str(stride)))
        made.append(grader.profile(file, problem=folder / "model.py"))
    return made


@pytest.mark.slow
def test_counts(profiles):
    """Are sectors, bytes and operations those that a count by hand gives?"""
    near, far = profiles
    elements = profiling_elements(near)
    assert near.total.sectors_per_request == 4.0 and far.total.sectors_per_request == 32.0
    assert near.total.moved == 2 * 4 * elements and far.total.moved == 16 * 4 * elements
    assert near.total.flops == elements and near.total.launches == 1 and near.total.lanes == 32


def profiling_elements(profile) -> int:
    """Elements of the input that was used, which fits and is no smaller than a half of what would."""
    ((rows, columns),) = profile.sizes
    assert 4 * rows * columns <= 32 << 20 and profile.lowered in ({}, {"batch_size": rows})
    return rows * columns


@pytest.mark.slow
def test_costly_line(profiles):
    """Is the line that wastes sectors shown, at the file's own number, and none of the kernel that wastes nothing?"""
    near, far = profiles
    number = SUBMISSION.split("\n").index("    if (i < n) y[j] = x[j] + 1.0f;") + 1
    assert f"→ {number} │     if (i < n) y[j] = x[j] + 1.0f;" in repr(far) and "→" not in repr(near)
    assert "32.0 sectors of 32 bytes per request; 4.0 would be enough" in repr(far)


@pytest.mark.slow
def test_places_that_blocks_which_do_not_run_would_compute():
    """Is a kernel counted that stores where the sums of another kernel say, of which only some blocks run?"""
    made = grader.profile(KERNELS_REF / "compaction" / "steps" / "02_counts_of_blocks.py")
    assert made.total.launches == 3 and made.total.moved > 0


def test_compare(profiles):
    """Does a comparison state both values and the change, and who is faster?"""
    made = profiling.Comparison(*profiles[::-1])
    assert made.ratio > 2 and repr(made).startswith(
        f"stride1.py is predicted {made.ratio:.2f} times as fast as stride33.py on the H200"
    )
    (row,) = [line.split() for line in repr(made).splitlines() if line.strip().startswith("sectors per request")]
    assert row[-3:] == ["32.00", "4.00", "×0.12"]
    assert set(made._repr_mimebundle_()) >= {"text/plain"}


@pytest.mark.parametrize("name", ["bias_scale_sigmoid", "logsumexp_backward", "mend_layernorm"])
def test_unwritten(name, tmp_path, monkeypatch):
    """Is an exercise as handed out neither counted nor compared, but named as grader.check names it?"""
    monkeypatch.setattr(profiling, "_counted", lambda *_: pytest.fail("it was counted"))
    written = tmp_path / "written.py"
    written.write_text(
        "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self, *_): ...\n    forward = print\n"
    )
    shown = f"{name}: not attempted\n{EXPLANATIONS[Reason.not_attempted]}"
    for call in (
        lambda: grader.profile(name),
        lambda: grader.compare(name, written, problem=name.removesuffix("_backward")),
        lambda: grader.compare(written, name, problem=name.removesuffix("_backward")),
    ):
        with pytest.raises(profiling.NotAttempted) as refused:
            call()
        assert str(refused.value) == shown and refused.value._render_traceback_() == [shown]


def test_different_problems(profiles, tmp_path):
    """Does the heading say so where the two kernels answer different problems, and only there?"""
    near, far = profiles
    (tmp_path / "other.py").write_text(MODEL)
    other = copy.copy(far)
    other._subject = dataclasses.replace(far._subject, problem_file=tmp_path / "other.py")
    heading = repr(profiling.Comparison(near, other)).splitlines()[0]
    assert "(problem other)" in heading and heading.endswith(": they answer different problems")
    assert "problem" not in repr(profiling.Comparison(near, far)).splitlines()[0]


def test_same_words_in_html(profiles):
    """Has the HTML of a profile the table's every cell?"""
    page, text = (
        feedback.as_html(profiles[1].parts(pictures=False)),
        feedback.as_text(profiles[1].parts(pictures=False)),
    )
    assert all(word in page for word in text.split() if word not in ("→", "│"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "what, device, says",
    [("conv2d", "H2000", "is unknown"), (KERNELS_REF / "conv2d" / "model.py", "H200", "has no class named ModelNew.")],
)
def test_cannot(what, device, says):
    """Is what cannot be counted one sentence?"""
    with pytest.raises(check.CannotCheck, match=says):
        grader.profile(what, device, problem="conv2d")


# --- %%cuda ---------------------------------------------------------------------------------------------------------


def test_cell_with_main(capsys):
    """Does a cell with a main run, with its output printed and nothing else?"""
    text = """
        #include <cstdio>
        __global__ void k(int n) { if (threadIdx.x < n) printf("thread %d\\n", threadIdx.x); }
        int main(int argc, char** argv) { k<<<1, 32>>>(argc); cudaDeviceSynchronize(); }
    """
    assert magic.run(textwrap.dedent(text), arguments=["more"]) is None
    assert capsys.readouterr().out == "thread 0\nthread 1\n"


def test_first_cell_of_a_machine(monkeypatch):
    """Is the sentence that simt compiles its own parts, once, left out of the cell's output?"""
    monkeypatch.setattr(magic.sandbox, "has_gpu", lambda: False)
    monkeypatch.setattr(magic, "_process", lambda *_: (0, "", "simt: compiling its own parts, once (about 15 s) ...\n"))
    assert magic.run("int main() { return 0; }") is None


def test_cell_with_kernels_only():
    """Is a cell without a main compiled, and is that reported?"""
    assert (
        repr(magic.run("__global__ void k(float* y) { y[threadIdx.x] = 1; }"))
        == "Kernel k compiled. It was not run, because the cell has no main."
    )


def test_cell_that_does_not_compile():
    """Is the first error at the cell's line, explained?"""
    text = repr(magic.run("__global__ void k(float* y) {\n    int row = threadIdx.x;\n    y[rwo] = 1;\n}\n"))
    assert "→ 3 │     y[rwo] = 1;" in text and "Look for a misspelling" in text and text.count("y[rwo] = 1;") == 1


def test_cell_with_a_defect():
    """Does --check find what is wrong, at the cell's line?"""
    cell = (
        "__global__ void k(float* y) {\n"
        "    y[threadIdx.x] = 1;\n"
        "}\n"
        "int main() { float* y; cudaMalloc(&y, 40); k<<<1, 16>>>(y); cudaDeviceSynchronize(); cudaFree(y); }\n"
    )
    text = repr(magic.run(cell, check=True))
    assert "1 element past its end" in text and "→ 2 │     y[threadIdx.x] = 1;" in text


def test_extension(monkeypatch):
    """Does %load_ext grader give IPython the magic?"""
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython()
    shell.run_line_magic("load_ext", "grader")
    made = shell.run_cell_magic("cuda", "", "__global__ void k() {}\n")
    assert repr(made).startswith("Kernel k compiled")
    with pytest.raises(UsageError, match="no closing quotation"):
        shell.run_cell_magic("cuda", '"abc', "__global__ void k() {}\n")


def test_the_magic_reads_gpus_as_everything_else_does(monkeypatch):
    """Does --device of %%cuda take a GPU's name however it is written, and refuse another in the usual words?"""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython() or InteractiveShell.instance()
    shell.run_line_magic("reload_ext", "grader")
    commands = []
    monkeypatch.setattr(magic.sandbox, "has_gpu", lambda: False)
    monkeypatch.setattr(magic, "_process", lambda command, *_: commands.append(command) or (0, "", ""))
    for written in ("h200", "NVIDIA-H200", '"NVIDIA H200"', "'h200'"):
        shell.run_cell_magic("cuda", f"--device {written} 1", "int main() { }\n")
    assert {tuple(command[3:6]) for command in commands} == {("run", "--device", "H200")} and len(commands) == 4
    for written in ("B9000", '""', "é"):
        with pytest.raises(UsageError, match=r"^%%cuda --device: The GPU '.*' is unknown\. Choose one of T4, A100"):
            shell.run_cell_magic("cuda", f"--device {written}", "int main() { }\n")
    assert len(commands) == 4
