"""Does `grader bench --backward` time forward and backward as it times forward, with gradients that are right?"""

import functools
import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from grader.bench import backward, models, rows, times, work
from grader.bench.interleaved import Job, _time_row
from grader.cli import statuses
from grader.paths import KERNELS_REF
from grader.problems import problem as problems
from tests.grader.bench.modes import DETACHED, DIES, OWN, PLANES, WRONG, run
from tests.grader.scaffold import HEAD


def prepared(path, entry, task_seed=3):
    """A row's ForwardBackward, the instance, its input and the gradient that it starts from."""
    made = problems.read(path)
    instance = made.instantiate(made.full(), task_seed, "cpu")
    inputs = list(instance.inputs)
    upstream = backward.make_upstream(made, instance, task_seed)
    both = backward.ForwardBackward(entry, made, instance, models.Layouts(inputs), models.Layouts(upstream))
    return both, instance, inputs, upstream


def largest_of(errors: dict[str, float | None]) -> float:
    """The largest error, of which none may be missing."""
    known = [error for error in errors.values() if error is not None]
    assert len(known) == len(errors)
    return max(known)


@pytest.mark.parametrize("largest", [1, 1 << 27])
def test_the_right_gradients_are_those_of_the_formula(problem, monkeypatch, largest):
    """Of y = x * scale: is x's gradient up * scale in each image, and scale's the sum of up * x, one image at a time or
    all?
    """
    monkeypatch.setattr(backward, "MAX_ELEMENTS", largest)
    _, instance, (x,), (up,) = prepared(problem, rows.Entry("eager", "eager"))
    expected = backward.compute_expected(instance, [x], [up])
    scale = instance.model.get_parameter("scale").double()
    assert list(expected) == ["y", "x", "scale"] and list(expected["x"]) == list(expected["y"]) == [0, 2, 3]
    for image in (0, 2, 3):
        torch.testing.assert_close(expected["x"][image][0], up[image].double() * scale)
        torch.testing.assert_close(expected["y"][image][0], x[image].double() * scale)
    torch.testing.assert_close(expected["scale"][-1], (up.double() * x.double()).sum(0))
    assert instance.inputs[0] is x


def test_gradients_of_two_calls_are_not_added_up(problem, write):
    """Are gradients those of one call after several, for eager and for a file, and do the inputs stay without one?"""
    (own,) = write(own=OWN)
    for entry in (rows.Entry("eager", "eager"), rows.Entry("own", "submission", file=str(own))):
        both, instance, inputs, upstream = prepared(problem, entry)
        expected = backward.compute_expected(instance, inputs, upstream)
        for _ in range(3):
            both.drop()
            out = both()
        errors = backward.measure_errors(both, out, expected)
        assert list(errors) == ["y", "x", "scale"] and largest_of(errors) < 1e-6
        assert inputs[0].grad is None and not inputs[0].requires_grad
        both()  # without drop(): twice the gradient, which shows that drop() did something
        assert backward.measure_errors(both, out, expected)["scale"] == pytest.approx(1.0, rel=1e-3)


PARTLY = HEAD + "        return x * self.scale.detach()\n"


def test_a_gradient_that_is_missing_is_a_failure(problem, write):
    """Of a model whose result reaches x and not the weight: is that an error, unlike a model without a backward?"""
    (partly,) = write(partly=PARTLY)
    both, instance, inputs, upstream = prepared(problem, rows.Entry("partly", "submission", file=str(partly)))
    with pytest.raises(ValueError, match="scale gets no gradient"):
        backward.measure_errors(both, both(), backward.compute_expected(instance, inputs, upstream))


def test_both_layouts_have_the_same_gradients(write):
    """With weights and inputs in channels_last, is every error as small, and the gradient that comes in laid out
    likewise?
    """
    (path,) = write(planes=PLANES)
    both, instance, inputs, upstream = prepared(path, rows.Entry("eager", "eager", channels_last=True))
    expected = backward.compute_expected(instance, inputs, upstream)
    assert largest_of(backward.measure_errors(both, both(), expected)) < 1e-5
    assert both.upstream[0].is_contiguous(memory_format=torch.channels_last) and upstream[0].is_contiguous()


def test_gradients_are_held_to_their_class():
    """Is the largest error held to twice eager's, can a gradient in TF32 not hide behind an ill-conditioned one, and
    are the last digits no fault?"""
    eager = {"y": 2e-7, "x": 2e-6, "w": 1e-3}
    assert backward.is_within_class({"y": 1e-6, "x": 1e-5, "w": 2e-3}, eager, 2.0) is True
    assert backward.is_within_class({"y": 2e-7, "x": 2e-6, "w": 2.1e-3}, eager, 2.0) is False
    assert backward.is_within_class({"y": 2e-7, "x": 3e-4, "w": 1e-3}, eager, 2.0) is False
    assert (
        backward.is_within_class({"y": 5e-8}, {"y": 0.0}, 2.0) is True
        and backward.is_within_class({"y": 3e-7}, {"y": 1e-7}, 2.0) is False
    )
    assert (
        backward.is_within_class({"y": 1e-7, "x": None, "w": 0.0}, eager, 2.0) is None
        and backward.is_within_class({}, eager, 2.0) is None
    )


def test_work_there_and_back(write):
    """Are a convolution's operations those that torch counts in forward and backward, and the bytes twice forward's?"""
    (path,) = write(planes=PLANES)
    made = problems.read(path)
    instance = made.instantiate(made.full(), 0, "cpu")
    with FlopCounterMode(display=False) as flops:
        instance.model(instance.inputs[0].requires_grad_()).sum().backward()
    assert work.count_work(made, backward=True).products == flops.get_total_flops() > 0
    assert work.count_work(made, backward=True).bytes == 2 * work.count_work(made).bytes


def test_rows_of_backward():
    """Are they backward.py, eager and torch.compile in both layouts and precisions, and is none of the steps there?"""
    made = problems.read(KERNELS_REF / "conv_groupnorm_maxpool" / "model.py")
    found = [e.name for e in rows.make_entries(made, [], [], work.count_work(made), backward=True)]
    ours = [n for n in found if not n.startswith(("eager", "torch"))]
    assert ours[0] == "backward" and all("backward" in n for n in ours) and len(found) - len(ours) == 12
    assert not [n for _, f in rows.find_ladder(made.path.parent) for n in [f.name] if "backward" in n]


def test_a_run_of_backward_keeps_the_forward_rows(problem, write, tmp_path, here):
    """Are right and wrong gradients distinguished, is one without a backward left out, does one that kills its process
    get a row, and do the forward rows stay?"""
    out = tmp_path / "bench.json"
    before = {
        "rows": [{"name": "old", "kind": "eager", "precision": "fp32", "error": None, "in_class": None, "failed": "-"}],
        "best": {},
    }
    out.write_text(json.dumps({"command": "bench before", "interrupted": True, "problems": {"scaling": before}}))
    files = write(own=OWN, wrong=WRONG, bare=DETACHED, dies=DIES)
    result = run(
        *files, "--problem", problem, "--backward", "--add", "--out", out, "--without", "compile", "--seconds", "0.2"
    )
    assert result.exit_code == statuses.FAILED, result.output
    made = json.loads(out.read_text())["problems"]["scaling"]
    assert made["rows"] == before["rows"] and made["command"] == "bench before" and made["interrupted"] is True
    rows = {row["name"]: row for row in made["backward"]["rows"]}
    assert list(rows) == ["submission own", "submission wrong", "submission dies", "eager"]
    assert rows["submission own"]["in_class"] is True and rows["submission wrong"]["in_class"] is False
    assert rows["submission wrong"]["errors"]["scale"] == pytest.approx(1e-3, rel=0.1) and rows["eager"]["ms"] > 0
    assert "SIGSEGV" in rows["submission dies"]["failed"]
    assert "no gradient" in made["backward"]["without_backward"]["submission bare"]
    assert made["backward"]["best"]["fp32"]["ours"] == "submission own"
    assert "gradients of every input and weight" in result.stdout and "submission bare" in result.stdout


def test_what_is_timed_on_a_gpu(monkeypatch):
    """Is the L2 flushed, then the GPU kept waiting while the call is launched, and does nothing else stand between the
    events?
    """
    did = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            did.append("event")

        def elapsed_time(self, stop):
            return 3.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(
        torch.cuda, "_sleep", lambda cycles: did.append("wait" if cycles > 1e6 else "hardly"), raising=False
    )
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: did.append("end"))
    job = Job(lambda: did.append("call"), dict, lambda: did.append("drop"))
    take = functools.partial(
        _time_row,
        rows.Entry("eager", "eager"),
        "eager",
        job,
        times.EventTimer(lambda: did.append("flush")),
        lambda line: None,
    )
    assert take() == pytest.approx(3e-3)
    assert did == ["drop", "flush", "wait", "event", "call", "event", "end", "drop"]
