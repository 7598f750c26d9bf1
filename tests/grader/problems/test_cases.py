"""Are a file's declared cases read strictly, and good cases made where it declares none?"""

import textwrap

import pytest
import torch

from grader.paths import KERNELS_REF
from grader.problems import cases, problem
from grader.problems.problem import ProblemError

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"

CONVOLUTION = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.norm = nn.GroupNorm(num_groups, out_channels)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return self.norm(self.conv(x) + self.bias)

batch_size = 128
in_channels = 8
out_channels = 64
height, width = 256, 256
kernel_size = 3
num_groups = 8
bias_shape = (out_channels, 1, 1)

def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, num_groups, bias_shape]
"""
)

MATMUL = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, A, B):
        return A.T @ B

M = 1024 * 2
K = 4096 * 2
N = 2048 * 2

def get_inputs():
    return [torch.rand(K, M), torch.rand(K, N)]

def get_init_inputs():
    return []
"""
)

LOSS = (
    HEAD
    + """
from torch.distributions import Pareto

class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean((predictions - targets) ** 2)

batch_size = 32768
input_shape = (32768,)
dim = 1

def get_inputs():
    return [Pareto(0.01, 1.5).sample((batch_size, *input_shape)), Pareto(0.01, 1.5).sample((batch_size, *input_shape))]

def get_init_inputs():
    return []
"""
)

ATTENTION = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, n_embd, n_head, max_seqlen):
        super().__init__()
        assert n_embd % n_head == 0
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(max_seqlen, max_seqlen)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.qkv(x).split(C, 2))
        a = (q @ k.transpose(-2, -1)).masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        return (F.softmax(a, -1) @ v).transpose(1, 2).reshape(B, T, C)

batch_size = 32
max_seqlen = 1024
seq_len = 512
n_embd = 768
n_head = 8

def get_inputs():
    return [torch.rand(batch_size, seq_len, n_embd)]

def get_init_inputs():
    return [n_embd, n_head, max_seqlen]
"""
)

TRIANGULAR = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, A, B):
        return torch.tril(A @ B)

M = 4096

def get_inputs():
    return [torch.tril(torch.rand(M, M)), torch.tril(torch.rand(M, M))]

def get_init_inputs():
    return []
"""
)

CLASSES = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, p, t):
        return F.cross_entropy(p, t)

batch_size = 32768
num_classes = 4096

def get_inputs():
    return [torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))]

def get_init_inputs():
    return []
"""
)

TIED = (
    HEAD
    + """
from torch.distributions import Pareto

class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))

batch_size = 32768
input_shape = (32768,)
dim = 1

def get_inputs():
    predictions = Pareto(0.01, 1.5).sample((batch_size, *input_shape))
    return [predictions, torch.randint(0, 2, (batch_size,)).float() * 2 - 1]

def get_init_inputs():
    return []
"""
)

GLOBAL = (
    HEAD
    + """
def start(width):
    return torch.zeros(rows, width)

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.start = start(width)

    def forward(self, x):
        return self.start + x

batch_size = 48
shape = rows, _ = (batch_size, 3)
width = 64

def get_inputs():
    return [torch.rand(batch_size, width)]

def get_init_inputs():
    return [width]
"""
)

FIXED = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand([4, 4, 4, 4])]

def get_init_inputs():
    return [[], {}]
"""
)

FILES = {
    "convolution": CONVOLUTION,
    "matmul": MATMUL,
    "loss": LOSS,
    "attention": ATTENTION,
    "triangular": TRIANGULAR,
    "classes": CLASSES,
    "fixed": FIXED,
    "tied": TIED,
    "global": GLOBAL,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each file's problem and the cases made for it, once."""
    done = {}

    def get(name):
        if name not in done:
            path = tmp_path_factory.mktemp("files") / f"{name}.py"
            path.write_text(FILES[name])
            read = problem.read(path)
            done[name] = read, read.cases()
        return done[name]

    return get


# --- made ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_made_case_runs_and_is_small(made, name):
    """Does Model take every made case, with few elements and finite results?"""
    read, found = made(name)
    assert found
    for case in found:
        instance = read.instantiate(case, seed=3)
        assert sum(x.numel() for x in instance.inputs) <= cases.MOST_ELEMENTS
        assert all(torch.isfinite(out).all() for out in instance.eager())
        assert case.reduction >= 1


@pytest.mark.parametrize("name", sorted(set(FILES) - {"fixed", "global"}))
def test_several_different_shapes_are_made(made, name):
    """Are there a smallest, an odd and a larger shape among them?"""
    read, found = made(name)
    shapes = {tuple(tuple(x.shape) for x in read.instantiate(case, 0).inputs) for case in found}
    assert len(shapes) >= 4
    assert any(all(s == 1 or s < 10 for x in shape for s in x) for shape in shapes)
    assert any(any(s % 2 and s > 10 for x in shape for s in x) for shape in shapes)


def test_divisibility_is_kept(made):
    """Does the number of channels stay a multiple of the groups, and the derived bias shape follow?"""
    read, found = made("convolution")
    for case in found:
        module = read.module(case.set)
        assert module.out_channels % module.num_groups == 0
        assert module.bias_shape == (module.out_channels, 1, 1)
        assert (module.kernel_size, module.num_groups, module.in_channels) == (3, 8, 8)


def test_dimensions_differ_so_that_mixing_them_up_shows(made):
    """Is there a case in which height and width differ, and one in which M, N and K all do?"""
    read, found = made("convolution")
    assert any(read.module(case.set).height != read.module(case.set).width for case in found)
    read, found = made("matmul")
    assert any(len({case.set["M"], case.set["K"], case.set["N"]}) == 3 for case in found)


def test_inputs_with_structure_are_left_as_they_are(made):
    """Are triangular inputs never replaced by full ones, while plain random ones also come with both signs?"""
    assert all(case.inputs == "file" for case in made("triangular")[1])
    assert {case.inputs for case in made("matmul")[1]} >= {"file", "normal", "large_mean"}


def test_a_tuple_of_sizes_is_lowered(made):
    """Is a size inside a tuple lowered, and the axis number left?"""
    _, found = made("loss")
    assert all(case.set["input_shape"][0] < 32768 and "dim" not in case.set for case in found)


def test_class_indices_stay_valid(made):
    """Do integer inputs follow the lowered number of classes?"""
    read, found = made("classes")
    for case in found:
        x, target = read.instantiate(case, 1).inputs
        assert target.dtype == torch.int64 and target.max() < x.shape[1]


def test_the_same_cases_are_made_again(made):
    """Do the cases depend on the file alone, and not on how fast the machine is?"""
    read, found = made("convolution")
    assert problem.read(read.path).cases() == found


def test_what_the_command_line_sets_stays(made, tmp_path):
    """Is a size given by --set the same in all cases?"""
    read = problem.read(made("matmul")[0].path, {"K": "24"})
    assert all(read.instantiate(case, 0).inputs[0].shape[0] == 24 for case in read.cases())


def test_sizes_that_must_agree_are_changed_together(made):
    """Where Model refuses one size without another: are both made odd, a power of two and large enough to need several
    blocks?
    """
    read, found = made("tied")
    shapes = [tuple(read.instantiate(case, 0).inputs[0].shape) for case in found]
    assert len(shapes) == len(set(shapes)) and all(rows == columns for rows, columns in shapes)
    assert shapes[0] == (1, 1) and (13, 13) in shapes and max(shapes) >= (256, 256)


def test_what_models_code_reads_stays(made):
    """Has a size that Model reads as a global, if only through a helper and another name, the file's value in every
    case?
    """
    read, found = made("global")
    assert {"batch_size", "rows"} <= read.read_by_model and "width" not in read.read_by_model
    assert len(found) > 3 and all("batch_size" not in case.set and "width" in case.set for case in found)


def test_a_made_case_is_called_by_its_sizes(made):
    """Are the sizes that are not the file's own in the name, as --set takes them, and is a case of the file's own named
    as one?
    """
    names = [case.name for case in made("loss")[1]]
    assert "odd (batch_size=3, input_shape=(17,))" in names
    assert "odd, normal inputs (M=13, K=17, N=19)" in [case.name for case in made("matmul")[1]]
    assert [case.name for case in made("fixed")[1]][:2] == ["minimal (own sizes)", "odd, normal inputs (own sizes)"]
    assert all(case.made for case in made("loss")[1])


def test_too_few_sizes_are_reported(made):
    """Does a set of made cases of one or two sizes have a sentence, and has one of several, or a declared one, none?"""
    assert cases.too_few_sizes_warning(made("fixed")[1]).startswith(
        "All cases have the same sizes, as no other small ones were found"
    )
    two = [cases.Case(name, {"n": n}, made=True) for name, n in (("a", 1), ("b", 2), ("c", 1))]
    assert "have only 2 different sizes" in cases.too_few_sizes_warning(two)
    assert cases.too_few_sizes_warning(made("tied")[1]) == "" == cases.too_few_sizes_warning([cases.Case("declared")])


WHY = {
    "--set too large": (
        MATMUL,
        {"M": "900", "K": "900", "N": "8"},
        "with --set M=900, K=900, N=8: it has 817,200 input elements, and a case may have 400,000 at most; set others",
    ),
    "--set that Model refuses": (
        LOSS.replace("** 2)", "** 2, dim)"),
        {"dim": "5"},
        (
            "Model.forward raised IndexError: Dimension out of range (expected to be in range of [-2, 1], but got "
            "5) (line 9), at batch_size=2, "
        ),
    ),
    "--set empty": (
        MATMUL,
        {"M": "0"},
        "Model returns no tensor, or one that is empty or without a finite number, at K=16, N=16, M=0",
    ),
    "weights": (
        CLASSES.replace(
            "def forward",
            (
                "def __init__(self):\n"
                "        super().__init__()\n"
                "        self.own = nn.Linear(4096, 4096)\n\n"
                "    def forward"
            ),
        ),
        {},
        "no --set makes Model itself small enough (it has 16,781,312 weights, and a case may have 4,000,000 at "
        "most, at batch_size=2, num_classes=16); "
        "the file may declare cases, which have no limit: CASES = [",
    ),
    "read by Model": (
        GLOBAL.replace("48", "480000"),
        {},
        (
            "Model's own code reads batch_size=480000, which stays, as a submission cannot get another value); "
            "have Model take it as an argument"
        ),
    ),
}


@pytest.mark.parametrize("kind", WHY)
def test_a_missing_case_is_reported_with_its_cause(tmp_path, kind):
    """Which limit is it, at which sizes, what did Model say, and does what is advised help?"""
    text, overrides, says = WHY[kind]
    path = tmp_path / "none.py"
    path.write_text(text)
    with pytest.raises(ProblemError) as caught:
        problem.read(path, overrides).cases()
    assert says in str(caught.value)
    assert "no module-level sizes" not in str(caught.value)
    if "CASES = " in says:
        path.write_text(text + "\n" + str(caught.value).rpartition("limit: ")[2].rstrip("."))
        assert [case.name for case in problem.read(path).cases()] == ["small"]


def test_a_file_too_large_to_lower_says_what_helps(tmp_path):
    """Is a file whose sizes stand inside its functions refused with a sentence that says why?"""
    path = tmp_path / "big.py"
    path.write_text(FIXED.replace("[4, 4, 4, 4]", "[4096, 4096]"))
    with pytest.raises(ProblemError, match=r"no module-level sizes to lower.*16,777,216 input elements"):
        problem.read(path).cases()
    path.write_text(MATMUL.replace("A.T @ B", "A.T @ B.view(8192, 4096)"))
    with pytest.raises(ProblemError, match="--set NAME=VALUE, with NAME among M, K, N"):
        problem.read(path).cases()


def test_small_sizes_stay_where_the_others_are_enough(made):
    """Is no kernel size, group count or axis lowered without need?"""
    for name in ("convolution", "attention", "loss"):
        read, found = made(name)
        kept = {n for n, v in read.literals.items() if type(v) is int and v <= cases.SMALL and "batch" not in n}
        assert kept and not any(kept & case.set.keys() for case in found)


# --- declared --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", problem.names())
def test_the_courses_cases_run_quickly(name):
    """Does each declared case of the course's problems run, with room for a slow kernel?"""
    read = problem.read(KERNELS_REF / name / "model.py")
    found = read.cases()
    assert len(found) >= 5
    # these add once per element and launch little, but need more blocks than a block may have threads
    most = cases.MOST_ELEMENTS if name in ("scan", "compaction", "radix_pass") else 200_000
    for case in found:
        assert sum(out.numel() for out in read.instantiate(case, 0).eager()) <= most


def declared(tmp_path, text, settings=None):
    path = tmp_path / "declared.py"
    path.write_text(MATMUL + "\n" + textwrap.dedent(text))
    return problem.read(path, settings)


def test_declared_cases_are_read(tmp_path):
    """Is every field of a case kept?"""
    read = declared(
        tmp_path, 'CASES = [{"name": "a", "set": {"M": 2, "K": 3, "N": 4}, "inputs": "tiny", "reduction": 3}]'
    )
    assert read.cases() == [cases.Case("a", {"M": 2, "K": 3, "N": 4}, "tiny", 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ('CASES = "own sizes"', {}),
        ("", {"CASES": "'own sizes'"}),
        ('CASES = [{"name": "a", "set": {"M": 2}}]', {"CASES": "'own sizes'"}),
        ("CASES = [{'name': str(n)} for n in range(3)]", {"CASES": "'own sizes'"}),
    ],
)
def test_own_sizes_are_the_only_case_on_request(tmp_path, text, settings):
    """Do the file and --set say so alike, whatever other cases the file has, and with other sizes of --set's?"""
    read = declared(tmp_path, text, settings)
    (case,) = read.cases()
    assert (case.name, case.set, case.inputs, case.made) == ("own sizes", {}, "file", False)
    assert case.reduction == read.literals["K"] and cases.too_few_sizes_warning([case]) == ""
    (case,) = declared(tmp_path, text, settings | {"K": "5"}).cases()
    assert case.reduction == 5


@pytest.mark.parametrize(
    ("sizes", "is_there"), [((48, 24, 33), True), ((96, 96, 1), True), ((2048, 8192, 4096), False)]
)
def test_own_sizes_are_among_the_made_ones_if_they_are_small(tmp_path, sizes, is_there):
    """Is a file run at its own sizes next to others, unless these cost too much?"""
    m, k, n = sizes
    text = MATMUL.replace("M = 1024 * 2", f"M = {m}").replace("K = 4096 * 2", f"K = {k}")
    path = tmp_path / "sizes.py"
    path.write_text(text.replace("N = 2048 * 2", f"N = {n}"))
    read = problem.read(path)
    found = read.cases()
    own = [case for case in found if cases.has_own_sizes(read, case)]
    assert bool(own) is is_there and len(found) > len(own)
    assert all(case.name.endswith("(own sizes)") for case in own)
    assert all(read.instantiate(case, 0).inputs[1].shape == (k, n) for case in own)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CASES = []", "at least one case"),
        ('CASES = "own size"', 'or "own sizes"'),
        ("CASES = [3]", "CASES[0] must be a dict with a name"),
        ('CASES = [{"name": "a", "sets": {}}]', "CASES[0] ('a'): unknown key 'sets'"),
        ('CASES = [{"name": "a", "set": {"Q": 1}}]', "assigns no literal to 'Q'"),
        ('CASES = [{"name": "a", "inputs": "odd"}]', "inputs is 'odd', not one of file, normal"),
        ('CASES = [{"name": "a", "reduction": 0}]', "reduction is 0"),
        ('CASES = [{"name": "a"}, {"name": "a"}]', "two cases are called 'a'"),
    ],
)
def test_a_case_that_means_nothing_is_refused(tmp_path, text, says):
    """Is a mistake in CASES one sentence?"""
    with pytest.raises(ProblemError) as caught:
        declared(tmp_path, text).cases()
    assert says in str(caught.value)
