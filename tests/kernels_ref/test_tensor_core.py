"""conv2d_tensor_core beyond its ladder: the split answer in float32's class, and what older GPUs run instead of tensor
cores.
"""

import contextlib
import types

import pytest
import torch

import simt
from grader.problems import problem
from tests.kernels_ref.test_solutions import DEVICE, KERNELS_REF, ON_CPU, SEED, error_of, tolerance

FOLDER = KERNELS_REF / "conv2d_tensor_core"
FP32 = problem.read(FOLDER / "model.py", {"PRECISION": "'fp32'"})
GUARD = "#if __CUDA_ARCH__ >= 800"
GUARDED = [file for file in sorted(FOLDER.rglob("*.py")) if GUARD in file.read_text()]

_modules = {}


def load(file, old="", new=""):
    """The file as a module, with a piece of its text replaced, built once."""
    if (file, new) not in _modules:
        text = file.read_text(encoding="utf-8")
        assert old in text
        module = types.ModuleType(f"{file.stem}_{len(_modules)}")
        exec(compile(text.replace(old, new) if old else text, str(file), "exec"), module.__dict__)
        _modules[file, new] = module
    return _modules[file, new]


def solve(module, instance, **options):
    with torch.no_grad(), simt.run(**options) if ON_CPU else contextlib.nullcontext():
        model = module.ModelNew(*instance.init_args).to(DEVICE)
        model.load_state_dict(instance.model.state_dict())
        return model(*[x.clone() for x in instance.inputs])


@pytest.mark.slow
@pytest.mark.parametrize("case", FP32.cases(), ids=lambda case: case.name)
def test_the_split_is_as_precise_as_float32(case):
    """Is 3xTF32 right where TF32 is not enough, reading and writing within bounds in both directions?"""
    instance = FP32.instantiate(case, SEED, DEVICE)
    (expected,) = instance.expected()
    for options in ({"guard": "end"}, {"guard": "front", "schedule": "reverse"}) if ON_CPU else ({},):
        assert error_of(solve(load(FOLDER / "split.py"), instance, **options), expected) <= tolerance(
            instance, expected
        )


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="a GPU that has TF32 does not run it")
@pytest.mark.parametrize("file", GUARDED, ids=lambda file: file.stem)
def test_what_older_gpus_run(file):
    """Without TF32, is the result float32's, edges and all?"""
    for name in ("prime sizes", "many channels"):
        instance = FP32.instantiate(next(case for case in FP32.cases() if case.name == name), SEED, DEVICE)
        (expected,) = instance.expected()
        got = solve(load(file, GUARD, "#if 0"), instance, guard="end")
        assert error_of(got, expected) <= tolerance(instance, expected)


def test_all_tensor_core_kernels_are_guarded():
    """Does each file that uses TF32 also build for a GPU without it?"""
    assert [file.stem for file in GUARDED] == [
        "solution",
        "split",
        "02_wmma",
        "03_register_fragments",
        "04_channels_side_by_side",
    ]
