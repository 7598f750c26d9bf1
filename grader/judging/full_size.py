"""Count what a submission's kernels do at a problem's full size, in its worker.

Large inputs are memory that is never written, so that they take no time; small ones have values, and so have those that
may decide what kernels do. A few blocks of each launch are counted. Where inputs and outputs of the full size are too
large for a worker, parts of the batch are counted, and the counters at full size lie on the straight line through them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import torch

from grader.judging.context import Context
from grader.judging.kernel_use import OF_AUTOGRAD, computes
from grader.judging.session import IN_ORDER
from grader.problems.cases import Case
from grader.problems.problem import Instance
from grader.worker import protocol
from grader.worker.layout import find_strides
from grader.worker.messages import TalliedLaunch
from grader.worker.weights import list_buffers
from simt.runtime.monitor import Orders

BLOCKS = 12  # of each launch that are counted, besides its first and last
SECONDS = 8.0  # for all counted blocks of one launch, and for all launches
SMALL_DRAWN = 80 << 20  # bytes of inputs up to which all are drawn: branches and loops may depend on them
MOST_DRAWN = 256 << 20  # bytes of inputs that are drawn where some of them are indices, or outputs are whole numbers
LARGE = 4 << 30  # bytes of inputs, outputs and gradients, beyond which parts of the batch are counted instead
PARTS = (8, 4)  # what the batch is divided by
BATCH = "batch_size"  # the literal of a problem that says how large the batch is
SMALL = 16  # an operator counts that works on a tensor of 1 / SMALL of the largest input's elements
SHOWN = 5  # operators that a message names
# Operators that fill or copy memory, of which others are made (zeros_like, clone); their time is not predicted.
MOVING = {"cat", "constant_pad_nd", "copy_", "fill_", "flip", "gather", "index", "index_select", "roll", "zero_"}
TOUCHED = 0.5  # of the bytes of inputs and outputs that kernels touch at least, if they do the work
MEMORY_SHARE = 0.5  # of the available memory that outputs may have: a submission may fill them with zeros
FULL = Case("full size")


class NotPredicted(Exception):
    """Why there is no prediction, as a sentence."""


@dataclasses.dataclass(frozen=True)
class Size:
    """A problem at one size. Its inputs have values if they are small or hold indices (is_drawn).

    outputs: tensors of the outputs' shapes; none where Model cannot run without values. upstream: of these, those that
    backward starts from; gradients: tensors of the shapes of what it computes; both empty for forward alone. moving:
    filled by counting: operators of PyTorch that fill or copy memory beside the kernels.
    """

    case: Case
    instance: Instance
    outputs: Sequence[torch.Tensor]
    upstream: Sequence[torch.Tensor] = ()
    gradients: Sequence[torch.Tensor] = ()
    moving: set[str] = dataclasses.field(default_factory=set)

    @property
    def inputs(self) -> list[torch.Tensor]:
        return [value for value in self.instance.inputs if isinstance(value, torch.Tensor)]

    @property
    def moved(self) -> int:
        """Bytes that are read or written at least once."""
        return _measure((*self.inputs, *self.outputs, *self.upstream, *self.gradients))


def _measure(tensors: Sequence[torch.Tensor]) -> int:
    """Return the bytes of tensors; of an expanded one those that it covers."""
    return sum(min(one.numel() * one.element_size(), one.untyped_storage().nbytes()) for one in tensors)


def make_size(context: Context, case: Case = FULL) -> Size:
    """Return the problem at a size. Raises NotPredicted and ProblemError."""
    instance = _instantiate(context, case)
    outputs = find_outputs(instance)
    instance = _draw(context, case, instance, outputs)
    if not context.requires_gradient:
        return Size(case, instance, outputs)
    upstream = [one for one in outputs if one.is_floating_point()]
    if not upstream:
        raise NotPredicted("the shapes of the outputs at full size are not known.")
    inputs, parameters = context.differentiated
    own = dict(instance.model.named_parameters())
    gradients = [instance.inputs[n] for n in inputs] + [own[name] for name in parameters if name in own]
    return Size(case, instance, outputs, upstream, gradients)


def count(context: Context, size: Size, gpu: str) -> list[TalliedLaunch]:
    """Return the launches of one forward, or of forward and backward. Raises NotPredicted and FindingError."""
    if size.moved <= LARGE:
        return _check_touched(_count(context, size, gpu), size)
    batch = (context.problem.literals | context.problem.overrides).get(BATCH)
    if type(batch) is not int or any(batch % part for part in PARTS):
        raise NotPredicted("inputs and outputs at full size are too large for this machine.")
    counted = []
    for part in PARTS:
        smaller = make_size(context, dataclasses.replace(FULL, set={BATCH: batch // part}))
        counted.append(_count(context, smaller, gpu))
        size.moving.update(smaller.moving)
    few, more = counted
    if [(one.kernel, one.block) for one in few] != [(one.kernel, one.block) for one in more]:
        raise NotPredicted("it launches other kernels for other batches, and the full one is too large here.")
    distance = (1 - 1 / PARTS[1]) / (1 / PARTS[1] - 1 / PARTS[0])
    return _check_touched([extrapolate(one, other, distance) for one, other in zip(few, more)], size)


def _check_touched(launches: list[TalliedLaunch], size: Size) -> list[TalliedLaunch]:
    """Return the launches if they touch about as many bytes as inputs and outputs have. Raises NotPredicted."""
    touched = sum(one.times * (one.work.get("unique_read", 0) + one.work.get("unique_written", 0)) for one in launches)
    if touched < TOUCHED * size.moved:
        raise NotPredicted("at full size its kernels touch only a part of the inputs and outputs.")
    return launches


def extrapolate(few: TalliedLaunch, more: TalliedLaunch, distance: float) -> TalliedLaunch:
    """Return the launches on the straight line through both, `distance` times their difference beyond the second."""

    def extend(a: float, b: float) -> float:
        return max(0.0, b + distance * (b - a))

    def extend_all(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
        return {name: extend(a.get(name, 0.0), value) for name, value in b.items()}

    return TalliedLaunch(
        kernel=more.kernel,
        grid=[max(1, round(extend(a, b))) for a, b in zip(few.grid, more.grid)],
        block=more.block,
        times=max(1, round(extend(few.times, more.times))),
        work=extend_all(few.work, more.work),
        mix=extend_all(few.mix, more.mix),
        waste=extend_all(few.waste, more.waste),
        lines=more.lines,
    )


# ---- one size ----


def is_drawn(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    """Return whether inputs get values: some are indices, or all together are small. Others are never written.

    Outputs that are all whole numbers, such as the counts of a histogram, tell that values decide what is done.
    """
    size = _measure(inputs)
    if size <= SMALL_DRAWN or not all(one.is_floating_point() for one in inputs):
        return True
    return bool(outputs) and size <= MOST_DRAWN and not any(one.is_floating_point() for one in outputs)


def _instantiate(context: Context, case: Case) -> Instance:
    """Return the problem without any values."""
    instance = context.problem.instantiate(case, context.request.seed, "meta")
    if any(isinstance(value, torch.Tensor) for value in (*instance.init_args, *instance.init_kwargs.values())):
        raise NotPredicted("Model is constructed from tensors.")
    return instance


def _draw(context: Context, case: Case, instance: Instance, outputs: Sequence[torch.Tensor]) -> Instance:
    """Return the problem with the inputs' values where they may count, else without. Raises NotPredicted."""
    tensors = [value for value in instance.inputs if isinstance(value, torch.Tensor)]
    if not is_drawn(tensors, outputs):
        return instance
    if _measure(tensors) > MOST_DRAWN:
        raise NotPredicted("the inputs hold indices, and are too large to draw.")
    return dataclasses.replace(instance, inputs=context.problem.draw_inputs(case, context.request.seed))


def find_outputs(instance: Instance) -> list[torch.Tensor]:
    """Return tensors of the outputs' shapes, without values; none where Model cannot run without values."""
    try:
        with instance.blame(), torch.no_grad():
            inputs = [one.to("meta") if isinstance(one, torch.Tensor) else one for one in instance.inputs]
            output = instance.model(*inputs)
    except Exception:
        return []
    made = output if isinstance(output, (list, tuple)) else [output]
    return [one for one in made if isinstance(one, torch.Tensor)]


def _make_room(tensor: torch.Tensor) -> protocol.Room | None:
    """Return a place for a tensor of floats, whose values nobody writes; None for one whose values count."""
    if not tensor.is_floating_point():
        return None  # its values are sent
    return protocol.Room(protocol.name_of(tensor.dtype), list(tensor.shape), find_strides(tensor))


def _pack_weight(value: torch.Tensor) -> protocol.Value:
    """Return a weight or a buffer; one that is no float is sent as zeros, which are valid indices."""
    if value.is_floating_point():
        return protocol.pack(value, _make_room)
    if _measure([value]) > MOST_DRAWN:
        raise NotPredicted("Model's buffers are too large to send.")
    return protocol.pack(torch.zeros(value.shape, dtype=value.dtype))


def _count(context: Context, size: Size, gpu: str) -> list[TalliedLaunch]:
    """Count at one size. Raises NotPredicted, and FindingError where the submission fails there."""
    if _measure(size.outputs) > MEMORY_SHARE * _read_available_memory():
        raise NotPredicted("the outputs at full size need too much of this machine's memory.")
    session, instance = context.session, size.instance
    construct = protocol.Construct(
        args=protocol.pack(list(instance.init_args)),
        kwargs=protocol.pack(dict(instance.init_kwargs)),
        state={name: _pack_weight(value) for name, value in instance.weights().items()},
        model_source=context.problem.text,
        model_path=str(context.problem.path),
        overrides=protocol.pack(dict(size.case.set) | context.problem.overrides),
        guard=None,
        seconds=session.limits.own,
        buffers=list_buffers(instance.model),
        weight_seed=instance.weight_seed,
        gpu=gpu,
    )
    counting = Orders(count=True, seconds=SECONDS)
    session.query(construct, "ModelNew(...)", FULL.name, orders=counting)
    if is_drawn(size.inputs, size.outputs):
        session.begin(IN_ORDER)
        inputs = session.exchange.inputs(instance.inputs)
    else:
        inputs = [protocol.pack(value, _make_room) for value in instance.inputs]
    prepare = protocol.Prepare([inputs])
    if size.upstream:
        prepare.upstream = [[protocol.pack(one, _make_room) for one in size.upstream]]
        prepare.differentiable, prepare.parameters = context.differentiated
    session.query(prepare, "the preparation", FULL.name, orders=counting)
    command = protocol.Tally(blocks=BLOCKS, gpu=gpu, kernel_seconds=SECONDS, seconds=SECONDS)
    watched = dataclasses.replace(counting, watch=max(1, max((one.numel() for one in size.inputs), default=1) // SMALL))
    reply = session.query(command, "forward", FULL.name, orders=watched)
    assert isinstance(reply, protocol.Tallied)
    names = {name.removeprefix("aten::") for name in session.client.report.operators}
    operators = sorted(name for name in names - OF_AUTOGRAD if computes(name))
    if operators:
        named = ", ".join(operators[:SHOWN])
        raise NotPredicted(f"PyTorch's own operators ({named}) compute a part, and their time is not known.")
    size.moving.update((names & MOVING) - ({"fill_"} if "zero_" in names else set()))  # zero_ calls fill_
    if not reply.launches:
        raise NotPredicted("no kernel was launched at full size.")
    if reply.left_out:
        raise NotPredicted(f"{reply.left_out:,} launches of further kernels were not counted.")
    return reply.launches


def _read_available_memory() -> float:
    """Return the bytes that Linux says are available; infinity where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return math.inf
