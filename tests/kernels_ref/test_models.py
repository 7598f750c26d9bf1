"""Are the problems KernelBench files at KernelBench's sizes, with small cases that cover what they claim to?"""

import ast
import importlib.util
from pathlib import Path

import pytest
import torch

from grader.problems import problem

KERNELS_REF = Path(__file__).resolve().parents[2] / "kernels_ref"

# name: (arguments of get_init_inputs, shape of the input or of several, shape of the output, names of the weights)
CONV = ["conv.bias", "conv.weight"]
NORM = ["group_norm.bias", "group_norm.weight"]
FULL_SIZE = {
    "conv2d": ([8, 64, 3], (128, 8, 128, 128), (128, 64, 126, 126), CONV),
    "im2col_conv": ([8, 64, 3], (128, 8, 128, 128), (128, 64, 126, 126), CONV),
    "groupnorm": ([64, 8], (112, 64, 512, 512), (112, 64, 512, 512), ["gn.bias", "gn.weight"]),
    "bias_scale_sigmoid": (
        [(32, 1, 1), (32, 1, 1)],
        (128, 32, 254, 254),
        (128, 32, 254, 254),
        ["bias", "scale"],
    ),
    "logsumexp": ([], (128, 64, 126, 126), (128, 1, 126, 126), []),
    "conv_sigmoid_groupnorm": (
        [8, 32, 3, 8, (32, 1, 1), (32, 1, 1)],
        (128, 8, 256, 256),
        (128, 32, 254, 254),
        CONV + NORM + ["bias", "scale"],
    ),
    "conv_groupnorm_maxpool": (
        [8, 64, 3, 16, (64, 1, 1), 4, 0.0, 1.0],
        (128, 8, 128, 128),
        (128, 64, 31, 31),
        CONV + NORM + ["scale"],
    ),
    "conv_groupnorm_logsumexp": ([8, 64, 3, 16, 1e-5], (128, 8, 128, 128), (128, 1, 126, 126), CONV + NORM),
    "ratio_interval": ([], (256, 2, 64, 500), (256, 3, 64, 1), []),
    "mend_layernorm": ([1024], (64, 16, 128, 1024), (64, 16, 128, 1024), ["ln.bias", "ln.weight"]),
    "matmul": ([], [(2048, 4096), (4096, 4096)], (2048, 4096), []),
    "attention": ([False], [(8, 16, 2048, 64)] * 3, (8, 16, 2048, 64), []),
    "int4_matvec": ([128], [(1, 8192), (28672, 1024), (28672, 64)], (1, 28672), []),
    "fp8_matvec": ([128], [(1, 8192), (28672, 8192), (28672, 64)], (1, 28672), []),
    "int8_matmul": ([], [(128, 8192), (128,), (28672, 8192), (28672,)], (128, 28672), []),
    "conv2d_tensor_core": ([64, 64, 3], (128, 64, 64, 64), (128, 64, 62, 62), CONV),
    "softmax": ([], (4096, 16384), (4096, 16384), []),
    "scan": ([], (67108864,), (67108864,), []),
    "histogram": ([256, 0.0, 1.0], (67108864,), (256,), []),
    "compaction": ([], (67108864,), (67108864,), []),
    "radix_pass": ([8], (67108864,), (67108864,), []),
    "scale_maxpool_clamp": ([(64, 1, 1), 4, 0.0, 1.0], (128, 64, 126, 126), (128, 64, 31, 31), ["scale"]),
}
# of the inputs, where they are not all float32
DTYPES = {
    "attention": [torch.float16] * 3,
    "int4_matvec": [torch.float16, torch.int32, torch.float16],
    "fp8_matvec": [torch.float16, torch.float8_e4m3fn, torch.float32],
    "int8_matmul": [torch.int8, torch.float32, torch.int8, torch.float32],
    "radix_pass": [torch.int32],
}
NAMES = sorted(FULL_SIZE)


def load_model(name):
    """model.py of a problem, executed as a plain Python file."""
    spec = importlib.util.spec_from_file_location(f"model_of_{name}", KERNELS_REF / name / "model.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_these_are_all_problems():
    """Does every folder in kernels_ref have its line in the table above?"""
    assert sorted(path.parent.name for path in KERNELS_REF.glob("*/model.py")) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_kernelbench_s(name):
    """Do arguments, input, output and weights at full size have the shapes of KernelBench's originals?"""
    module = load_model(name)
    arguments, input_shape, output_shape, weights = FULL_SIZE[name]
    assert module.get_init_inputs() == arguments
    with torch.device("meta"):  # shapes only: full size takes up to 15 GB
        inputs = module.get_inputs()
        model = module.Model(*module.get_init_inputs())
    assert [tuple(x.shape) for x in inputs] == (input_shape if isinstance(input_shape, list) else [input_shape])
    assert [x.dtype for x in inputs] == DTYPES.get(name, [torch.float32] * len(inputs))
    assert tuple(model(*inputs).shape) == output_shape
    assert sorted(model.state_dict()) == sorted(weights)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_uniform(name):
    """Does get_inputs draw from [0, 1), and integers from all that there are, new values at every call?"""
    module = load_model(name)
    small: dict[str, int] = dict.fromkeys(
        ("batch_size", "height", "width", "dim1", "dim2", "rows", "columns", "heads"), 9
    )
    small["length"] = 999 if name in ("scan", "histogram", "compaction", "radix_pass") else 9
    if name in ("int4_matvec", "int8_matmul", "fp8_matvec"):  # with a value for each group of columns, or for each row
        small |= {"batch_size": 99, "rows": 99, "columns": 4096}
    for size in small.keys() & set(vars(module)):
        setattr(module, size, small[size])
    for a, b in zip(module.get_inputs(), module.get_inputs(), strict=True):
        if a.dtype == torch.float8_e4m3fn:  # from -448 to 448
            a, b = (weight.float() / 900 + 0.5 for weight in (a, b))
        elif name == "fp8_matvec" and a.dtype == torch.float32:  # a group's largest weight by 448
            assert 448 * a.min() > 0.9 and 448 * a.max() <= 1 + 1e-6 and not torch.equal(a, b)
            continue
        if not a.is_floating_point():
            limits = torch.iinfo(a.dtype)
            least = 0 if name == "radix_pass" else limits.min  # whose keys are not negative
            assert least <= a.min() < least + 0.05 * (limits.max - least) and a.max() > 0.9 * limits.max
        else:
            assert 0 <= a.min() < 0.1 and 0.9 < a.max() <= (1 if a.dtype == torch.float16 else 1 - 2**-24)
        assert not torch.equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_cases_cover_and_stay_small(name):
    """Are there a minimal image, a batch of 1, powers of two and others, several images, and is each case small?"""
    problem_ = problem.read(KERNELS_REF / name / "model.py")
    cases = problem_.cases()
    assert len({case.name for case in cases}) == len(cases) >= 7
    shapes = []
    for case in cases:
        instance = problem_.instantiate(case, seed=0)
        (x, *others), (y,) = instance.inputs, instance.expected()
        shapes.append(tuple(x.shape))
        channels = x.shape[1] if x.dim() > 1 else 1
        weights = instance.model.get_parameter("conv.weight").numel() if hasattr(instance.model, "conv") else channels
        products = x.numel() // channels * weights
        if others:  # a product of matrices
            products = y.numel() * x.shape[1]
        assert products <= 2e5 * 72, f"{case.name} is too large for a CPU"
        assert y.numel() > 0 and torch.isfinite(y).any()
        assert torch.isfinite(y).all() or not torch.isfinite(x).all(), (
            f"{case.name}: finite inputs give what is not finite"
        )
    assert any(shape[0] == 1 for shape in shapes) and any(shape[0] > 1 for shape in shapes)
    if len(shapes[0]) > 1:
        assert any(shape[-1] == shape[-2] for shape in shapes) and any(shape[-1] != shape[-2] for shape in shapes)
    drawn = {"file", "normal"} if any(one.is_floating_point() for one in (x, *others)) else {"file"}
    assert drawn <= {case.inputs for case in cases}


@pytest.mark.parametrize("name", NAMES)
def test_solution_takes_model_s_arguments(name):
    """Does ModelNew's __init__ have the names and defaults of Model's? (Read from the source: nothing is built.)"""

    def arguments_of(file, class_name):
        tree = ast.parse((KERNELS_REF / name / file).read_text(encoding="utf-8"))
        (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name]
        (init,) = [node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        return ast.dump(init.args)

    assert arguments_of("solution.py", "ModelNew") == arguments_of("model.py", "Model")
