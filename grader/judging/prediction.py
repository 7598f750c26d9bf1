"""Predict the time of a submission that passed on a machine without a GPU, at the problem's full size.

The submission's worker counts a few blocks of each launch, on memory that is never written, and reports the counters.
The judge turns them into a time (simt.counting.time_model) and places it between the steps, the reference and the
fastest file, whose counters ship with the course. A prediction is no measurement and earns no points by itself: the
counters are what the worker says.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from pathlib import Path

import torch

from grader.judging import advice
from grader.judging.advice import Counted
from grader.judging.context import Context
from grader.judging.trial import FindingError
from grader.problems import ladders
from grader.problems.cases import Case, ProblemError
from grader.problems.problem import Instance
from grader.source import contract
from grader.verdict import PredictedLaunch, Prediction, Rung, Stage
from grader.worker import protocol
from grader.worker.layout import find_strides
from simt.counting.time_model import GPUS, Work, find_interval, predict
from simt.counting.what_if import Waste
from simt.devices import DEVICES

BLOCKS = 12  # of each launch that are counted, besides its first and last
SECONDS = 8.0  # for all counted blocks of one launch, and for all launches
MOST_DRAWN = 256 << 20  # bytes of inputs that are drawn where some of them are indices, not numbers to compute with
MEMORY_SHARE = 0.5  # of the available memory that outputs may have: a submission may fill them with zeros
FULL = Case("full size")


class NotPredicted(Exception):
    """Why there is no prediction, as a sentence."""


def build_ahead(context: Context, _stage: Stage) -> None:
    """Have the worker begin to build the kernels for counting, while other stages run."""
    if context.request.predict and not context.gpu:
        with contextlib.suppress(FindingError):  # of a worker that has died the next stage reports more
            context.session.query(protocol.Ahead(), "the build", None)


def run(context: Context, stage: Stage) -> None:
    """Write a prediction into the stage, or why there is none. Raises nothing that is the submission's fault."""
    gpu = context.request.predict
    assert gpu is not None
    try:
        stage.prediction = _predict(context, gpu)
        stage.message = f"{stage.message} The time on the {gpu} is predicted instead."
    except NotPredicted as error:
        stage.message = f"{stage.message} No time is predicted: {error}"
    except FindingError as error:
        stage.message = f"{stage.message} No time is predicted: {_shorten(error.finding.message)}"
    except ProblemError as error:
        stage.message = f"{stage.message} No time is predicted: {_shorten(str(error))}"


def _shorten(text: str) -> str:
    return text if len(text) <= 300 else text[:300] + " …"


def _predict(context: Context, gpu: str) -> Prediction:
    if context.process is None or not context.process.alive():
        raise NotPredicted("the submission's process has ended.")
    if context.requires_gradient:
        raise NotPredicted("that of a backward pass is not predicted.")
    instance = _instantiate(context)
    outputs = _find_outputs(instance)
    if sum(one.numel() * one.element_size() for one in outputs) > MEMORY_SHARE * _read_available_memory():
        raise NotPredicted("the outputs at full size need too much of this machine's memory.")
    tallied = _count(context, instance, gpu)
    if not tallied.launches:
        raise NotPredicted("no kernel was launched at full size.")
    if tallied.left_out:
        raise NotPredicted(f"{tallied.left_out:,} launches of further kernels were not counted.")
    launches = [read_launch(one, gpu) for one in tallied.launches]
    tensors = [value for value in instance.inputs if isinstance(value, torch.Tensor)]
    moved = sum(one.numel() * one.element_size() for one in (*tensors, *outputs))
    bound = moved / GPUS[gpu].dram
    total = sum(one.seconds for one in launches)
    if not math.isfinite(total):
        name = next(one.told.kernel for one in launches if not math.isfinite(one.seconds))
        raise NotPredicted(f"a block of `{name}` does not fit on the {gpu}.")
    low, high = (sum(one.told.times * find_interval(one.prediction)[i] for one in launches) for i in range(2))
    advised = advice.advise(launches, gpu, bound)
    slowest = max(launches, key=lambda one: one.seconds)
    sizes = [list(one.shape) for one in tensors]
    return Prediction(
        gpu=gpu,
        sizes=sizes,
        ms=_ms(total),
        low=_ms(low),
        high=_ms(high),
        limit=slowest.prediction.limit,
        bound_ms=_ms(bound),
        launches=[_describe(one) for one in launches],
        advice=advised.text,
        advice_line=_find_line(context, advised),
        rungs=list_rungs(context.problem.name, sizes, gpu),
    )


def _ms(seconds: float) -> float:
    return float(f"{1e3 * seconds:.4g}")


def _describe(one: Counted) -> PredictedLaunch:
    told = one.told
    return PredictedLaunch(
        kernel=told.kernel,
        grid=told.grid,
        block=told.block,
        times=told.times,
        ms=_ms(one.seconds),
        limit=one.prediction.limit,
    )


# ---- what is counted ----


def _instantiate(context: Context) -> Instance:
    """Return the problem at full size without any values; with the inputs' values where some are no floats."""
    instance = context.problem.instantiate(FULL, context.request.seed, "meta")
    if any(isinstance(value, torch.Tensor) for value in (*instance.init_args, *instance.init_kwargs.values())):
        raise NotPredicted("Model is constructed from tensors.")
    tensors = [value for value in instance.inputs if isinstance(value, torch.Tensor)]
    if all(one.is_floating_point() for one in tensors):
        return instance
    if sum(one.numel() * one.element_size() for one in tensors) > MOST_DRAWN:
        raise NotPredicted("the inputs hold indices, and are too large to draw.")
    drawn = context.problem.draw_inputs(FULL, context.request.seed)
    return dataclasses.replace(instance, inputs=drawn)


def _read_available_memory() -> float:
    """Return the bytes that Linux says are available; infinity where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return math.inf


def _find_outputs(instance: Instance) -> list[torch.Tensor]:
    """Return tensors of the outputs' shapes, without values; none where Model cannot run without values."""
    try:
        with torch.no_grad():
            inputs = [one.to("meta") if isinstance(one, torch.Tensor) else one for one in instance.inputs]
            output = instance.model(*inputs)
    except Exception:
        return []
    made = output if isinstance(output, (list, tuple)) else [output]
    return [one for one in made if isinstance(one, torch.Tensor)]


def _make_room(tensor: torch.Tensor) -> protocol.Room | None:
    """Return a place for a tensor of floats, whose values nobody writes; None for one whose values count."""
    if not tensor.is_floating_point():
        return None
    return protocol.Room(protocol.name_of(tensor.dtype), list(tensor.shape), find_strides(tensor))


def _count(context: Context, instance: Instance, gpu: str) -> protocol.Tallied:
    session = context.session
    construct = protocol.Construct(
        args=protocol.pack(list(instance.init_args)),
        kwargs=protocol.pack(dict(instance.init_kwargs)),
        state={name: protocol.pack(value, _make_room) for name, value in instance.model.state_dict().items()},
        model_source=context.problem.text,
        model_path=str(context.problem.path),
        overrides=protocol.pack(dict(FULL.set) | context.problem.overrides),
        guard=None,
        seconds=session.limits.own,
    )
    session.query(construct, "ModelNew(...)", FULL.name)
    inputs = [protocol.pack(value, _make_room) for value in instance.inputs]
    session.query(protocol.Prepare([inputs]), "the preparation", FULL.name)
    command = protocol.Tally(blocks=BLOCKS, gpu=gpu, kernel_seconds=SECONDS, seconds=SECONDS)
    reply = session.query(command, "forward", FULL.name)
    assert isinstance(reply, protocol.Tallied)
    return reply


def read_launch(told: protocol.TalliedLaunch, gpu: str) -> Counted:
    """Return what the worker says of a launch, with the time that follows from it."""
    fields = {one.name for one in dataclasses.fields(Work)} - {"blocks", "threads", "shared", "mix"}
    blocks, threads = math.prod(told.grid), math.prod(told.block)
    work = Work(
        blocks=max(1, blocks),
        threads=max(1, threads),
        shared=int(told.work.get("shared", 0)),
        mix=dict(told.mix),
        **{name: value for name, value in told.work.items() if name in fields},
    )
    known = {one.name for one in dataclasses.fields(Waste)}
    waste = Waste(**{name: value for name, value in told.waste.items() if name in known})
    return Counted(told, work, waste, predict(work, gpu))


def _find_line(context: Context, advised: advice.Advice) -> int | None:
    """Return the line of the student's file that the advice is about."""
    if advised.launch is None or advised.line is None:
        return None
    base = advised.launch.told.kernel.split("<")[0].split("::")[-1]
    for strings in context.session.client.sources:
        for text in strings.values():
            if base in text and (line := contract.locate(context.source, text, advised.line)):
                return line
    return None


# ---- the ladder ----


def list_rungs(problem: str, sizes: list[list[int]], gpu: str) -> list[Rung]:
    """Return what else is known to solve the problem at these sizes, with predicted and measured times on a GPU."""
    ladder = ladders.read(problem)
    if ladder is None or ladder.sizes != sizes or gpu not in DEVICES:
        return []
    made = []
    for rung in ladder.rungs:
        predicted = sum(one.times * predict(one.make_work(), gpu).seconds for one in rung.launches)
        measured = rung.measured.get(gpu)
        if rung.launches or measured is not None:
            made.append(
                Rung(
                    name=rung.name,
                    kind=rung.kind,
                    predicted=_ms(predicted) if rung.launches else None,
                    measured=measured,
                )
            )
    return made
