"""Rows of `grader bench` for other functions of torch, and images of inputs that are divided together."""

import pytest
import torch

from grader.bench import backward, models, rows
from grader.bench.work import count_work
from grader.paths import KERNELS_REF
from grader.problems import problem as problems

NAMES = sorted(file.parent.name for file in KERNELS_REF.glob(f"*/{rows.ANCHORS}"))
OTHER_FUNCTION = {"anchor: a copy"}  # which computes something else
ON_A_GPU = {"histogram", "scan"}  # whose anchors only nvcc builds
SAME_CASE = {"int8_matmul": "square"}  # torch's product of bytes takes no small one
COARSE = {"anchor: torch._scaled_mm, x in 8 bits": 0.1}  # largest relative errors where fewer bits are multiplied


def instance_of(name: str):
    read = problems.read(KERNELS_REF / name / "model.py")
    cases = [case for case in read.cases() if case.name == SAME_CASE.get(name, "power of two")] or read.cases()[-1:]
    return read, read.instantiate(cases[0], 0, "cuda" if name in ON_A_GPU else "cpu")


def of_anchor(read: problems.Problem, backward_too: bool = False) -> list[rows.Entry]:
    made = rows.make_entries(read, [], ["step", "reference", "compile"], count_work(read), backward_too)
    return [entry for entry in made if entry.kind == "anchor"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gpu if name in ON_A_GPU else []) for name in NAMES]
)
def test_anchors_compute_what_the_model_computes(name):
    """Does every anchor that this machine has give Model's result, within a few roundings to 16 bits?"""
    read, instance = instance_of(name)
    expected, tried = models.compute_expected(instance, list(instance.inputs)), 0
    for entry in of_anchor(read):
        if entry.name in OTHER_FUNCTION:
            continue
        try:
            out = models.prepare_call(entry, read, instance, list(instance.inputs))()
        except RuntimeError as error:  # of a backend or a size that a CPU has not
            assert "backend" in str(error) or "_int_mm" in str(error) or "expected" in str(error), error
            continue
        error = models.measure_error(out, expected)
        assert error is not None and error < COARSE.get(entry.name, 2e-3), entry.name
        tried += 1
    assert tried


def test_anchors_have_rows_of_their_own():
    """Are they of the problem's precision, left out on request, and in a run with backward if they have gradients?"""
    read, _ = instance_of("attention")
    entries = of_anchor(read)
    assert len(entries) == 3 and {entry.precision for entry in entries} == {"fp16"}
    assert of_anchor(read, backward_too=True) == entries
    assert not of_anchor(problems.read(KERNELS_REF / "int4_matvec" / "model.py"), backward_too=True)
    work = count_work(read)
    assert not [e for e in rows.make_entries(read, [], ["anchor"], work) if e.kind == "anchor"]
    assert {e.precision for e in rows.make_entries(read, [], [], work)} == {"fp16"}
    made = rows.make_entries(problems.read(KERNELS_REF / "matmul" / "model.py"), [], [], work)
    assert {e.precision for e in made if e.kind == "eager"} == {"fp32", "tf32"}


@pytest.mark.parametrize(
    ("name", "case", "divided"),
    [
        ("attention", "17 tokens", [True, True, True]),
        ("int8_matmul", "square", [True, True, False, False]),
        ("conv2d", "prime sizes", [True]),
    ],
)
def test_images_are_divided_where_the_model_wants_it(name, case, divided):
    """Are keys and values divided with the queries, and a matrix that is as long as the first by chance not?"""
    read = problems.read(KERNELS_REF / name / "model.py")
    instance = read.instantiate(next(one for one in read.cases() if one.name == case), 0, "cpu")
    inputs = list(instance.inputs)
    assert models.find_divided(instance, inputs) == divided
    (whole,) = instance.expected()
    for image, expected in models.compute_expected(instance, inputs).items():
        torch.testing.assert_close(expected, whole[image : image + 1])


def test_gradients_of_all_divided_inputs_are_compared_by_images(monkeypatch):
    """Computed one image at a time, is each gradient of attention the one of all images?"""
    read = problems.read(KERNELS_REF / "attention" / "model.py")
    instance = read.instantiate(next(one for one in read.cases() if one.name == "17 tokens"), 0, "cpu")
    inputs, upstream = list(instance.inputs), backward.make_upstream(read, instance, 3)
    whole = backward._compute_whole(instance, upstream)
    monkeypatch.setattr(backward, "MAX_ELEMENTS", 1)
    found = backward.compute_expected(instance, inputs, upstream)
    assert found.keys() == whole.keys() == {"y", "q", "k", "v"}
    for name, parts in found.items():
        assert len(parts) == 2
        for image, value in parts.items():
            torch.testing.assert_close(value, whole[name][-1][image : image + 1])
