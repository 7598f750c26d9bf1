"""Does variants.py change the constants that it is told to, in every file whose constants are worth it?"""

import pytest
import torch

import simt
from benchmarks.timing import variants
from grader.paths import KERNELS_REF

CONSTANTS = {
    "scan": "THREADS ROWS BLOCKS WORDS PAUSE_NS LINE",
    "int4_matvec": "STAGES BLOCKS",
    "int8_matmul": "ROWS MOST_STAGES",
    "attention": "STAGES M TILE BLOCKS HEADROOM",
}


@pytest.mark.parametrize(("name", "constant"), [(name, one) for name in CONSTANTS for one in CONSTANTS[name].split()])
def test_constants_are_replaced(name, constant):
    """Does each constant have a new value, in an extension of another name, and the rest its old one?"""
    text = (KERNELS_REF / name / "fastest.py").read_text(encoding="utf-8")
    made = variants.replace_constants(text, {constant: "77"})
    changed = [(a, b) for a, b in zip(text.splitlines(), made.splitlines(), strict=True) if a != b]
    assert all(f" {constant} = 77;" in b or f'name="{name}_fastest_{constant}_77"' in b for _, b in changed)
    assert len(changed) in (2, 3)  # BLOCKS is defined twice where it depends on the GPU


def test_combinations_and_errors():
    """Is the file as it is the first variant, then every combination, and is a wrong choice an error?"""
    assert variants.list_variants(("A=1,2", "B=3")) == [{}, {"A": "1", "B": "3"}, {"A": "2", "B": "3"}]
    assert variants.list_variants(()) == [{}]
    for wrong in ("A", "A=", "=1", "A=1,,2"):
        with pytest.raises(ValueError, match="NAME=VALUE"):
            variants.list_variants((wrong,))
    with pytest.raises(ValueError, match="constexpr int NONE"):
        variants.replace_constants("constexpr int A = 1;", {"NONE": "2"})


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="the script itself compares results on a GPU")
def test_a_variant_computes_the_same():
    """Is a scan of smaller parts the same scan?"""
    simt.enable()
    x = torch.rand(20000, generator=torch.Generator().manual_seed(3))
    file = KERNELS_REF / "scan" / "fastest.py"
    module = variants.load(file, {"ROWS": "2", "WORDS": "1"})
    assert isinstance(module, dict), module
    assert variants.is_near(module["ModelNew"]()(x), torch.cumsum(x, 0))
    assert not variants.is_near(x, torch.cumsum(x, 0))
