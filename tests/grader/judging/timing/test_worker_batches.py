"""Does a worker's timed batch compute what it should, forward alone and both ways, of a submission and of eager?"""

from typing import Any, cast

import pytest
import torch

from grader.paths import KERNELS_REF
from grader.problems import problem
from grader.worker import main, outputs, protocol
from grader.worker.baselines import EAGER, Baselines


def test_eager_is_timed_on_both_ways():
    """Is what is timed beside a NAME_backward forward and backward, with the gradients that autograd gives?"""
    read = problem.read(KERNELS_REF / "groupnorm" / "model.py")
    instance = read.instantiate(read.cases()[2], 3)
    upstream = read.upstream(read.cases()[2], 3, instance.eager())
    inputs, parameters = instance.differentiable()
    nobody: Any = None  # the worker is called here, and gets no orders
    made = main.Worker(nobody, gpu=False)
    made.model = Baselines()
    made.model.load_reference(instance.build())
    packed, started = ([[protocol.pack(value) for value in values]] for values in (instance.inputs, upstream))
    made.prepare(protocol.Prepare(packed, started, inputs, parameters))
    assert made.batch(protocol.Batch([0], EAGER)) == protocol.Timed()
    right = cast(list[torch.Tensor], instance.expected_gradients(upstream))  # three, none of them missing
    ((output, *got),) = made.held
    assert torch.allclose(output, instance.eager()[0]) and not output.requires_grad
    assert len(got) == len(right) == 3
    assert all(torch.allclose(a.double(), b, rtol=1e-3, atol=1e-4) for a, b in zip(got, right))
    made.batch(protocol.Batch([0], EAGER))
    kept = made.held[0]
    made.clear(protocol.Clear())
    assert made.held == [] and not any(one.any() for one in kept)


def test_a_workers_batch_goes_both_ways():
    """Does the worker's timed command make gradients once it was given an upstream gradient?"""
    nobody: Any = None  # the worker is called here, and gets no orders
    made = main.Worker(nobody, gpu=False)
    made.model = torch.nn.Linear(3, 2)
    calls = [(torch.randn(4, 3), torch.randn(4, 2)) for _ in range(2)]
    batches, upstream = ([[protocol.pack(pair[n])] for pair in calls] for n in (0, 1))
    made.prepare(protocol.Prepare(batches, upstream, [0], ["weight"]))
    made.batch(protocol.Batch([1, 0]))
    for (y, gx, gweight), (x, up) in zip(made.held, reversed(calls), strict=True):
        assert torch.allclose(y, made.model(x))
        assert torch.allclose(gx, up @ made.model.weight) and torch.allclose(gweight, up.t() @ x)


def test_a_few_calls_answer_for_all():
    """Does a worker that is asked to run the first calls only answer with as many results, each in its own memory?"""
    nobody: Any = None  # the worker is called here, and gets no orders
    made, ran = main.Worker(nobody, gpu=False), []
    made.model = lambda x: ran.append(x) or x + 1
    made.prepare(protocol.Prepare([[protocol.pack(torch.full((2,), float(n)))] for n in range(5)]))
    made.batch(protocol.Batch([4, 3, 2, 1, 0], calls=2))
    assert [float(x[0]) for x in ran] == [4, 3]
    assert [float(one[0]) for (one,) in made.held[:2]] == [5, 4]
    assert [one.shape for (one,) in made.held] == [torch.Size([2])] * 5
    assert len({one.data_ptr() for (one,) in made.held}) == 5
    made.batch(protocol.Batch([4, 3, 2]))
    assert [float(one[0]) for (one,) in made.held] == [5, 4, 3]


@pytest.mark.parametrize("output", [torch.ones(2), [torch.ones(2)], {"a": torch.ones(2), "b": (torch.ones(3), 5)}])
def test_what_stands_for_a_result_has_its_form(output):
    """Are as many tensors found in it, and is a lone one alone, so that both take as long to find?"""
    alike = outputs.make_alike(output)
    assert [one.shape for one in outputs.flatten(alike)] == [one.shape for one in outputs.flatten(output)]
    assert isinstance(alike, torch.Tensor) == isinstance(output, torch.Tensor)
