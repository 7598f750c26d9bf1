"""The judge's conversation with a submission's worker: construct a model, call it, collect what it returned."""

from __future__ import annotations

import contextlib
import dataclasses
import functools

import torch

from grader.judging import facts, findings, tolerance
from grader.judging.trial import MESSAGE_BYTES, ExpectedGradients, Finding, FindingError, Kind, Limits, Trial
from grader.problems.problem import Problem
from grader.problems.values import is_floating
from grader.source.contract import Source
from grader.verdict import Evidence, Reason
from grader.worker import protocol
from grader.worker.client import Client, Gone, Late, make_orders
from grader.worker.exchange import Bytes, GpuMemory, LentMemory
from grader.worker.layout import change_values
from grader.worker.protocol import DTYPES, ChannelError
from grader.worker.weights import list_buffers
from simt.runtime.monitor import Orders, Write


@dataclasses.dataclass
class Call:
    """One call of forward. run: the worker's report. difference: from the expected outputs, None if there is none.

    modified: numbers of the inputs that it changed. writes: the first write to each, where simt's runtime reports it.
    """

    run: protocol.Run
    outputs: list[torch.Tensor]
    difference: tolerance.Difference | None
    modified: list[int]
    writes: dict[int, Write] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Pass:
    """One forward and backward: the worker's report, and a tensor for each gradient, or None.

    written: the numbers of the inputs that backward wrote to, and whether it wrote to the upstream gradient, where
    simt's runtime reports that. kinds: what it launched in both halves.
    """

    reply: protocol.Gradients
    made: list[torch.Tensor | None]
    written: tuple[list[int], bool] = ([], False)
    kinds: set[Kind] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class How:
    """How a worker runs a submission.

    schedule: of threads and blocks on the CPU, "forward" or "reverse". guard: which end of each tensor lies at an
    inaccessible page, "front", "end" or None. check: with all of simt's checks on. idle: kernels are launched and run
    no thread; of a backward pass, those of backward alone. watch: have PyTorch's operators on tensors of at least so
    many elements reported by the worker, of a backward pass those of backward alone; 0: none. unseen: have simt's
    runtime report such operators, and who writes which bytes, without a word to the worker; 0: no.
    """

    schedule: str = "forward"
    guard: str | None = "end"
    check: bool = False
    idle: bool = False
    watch: int = 0
    unseen: int = 0


IN_ORDER = How()
REVERSED = How("reverse", "front")
CHECKED = How(guard=None, check=True)
IDLE = How(idle=True)


class Session:
    """A worker that has loaded the submission. Each method raises FindingError where the submission is at fault.

    It stays whole: every command shares the worker, the memory that it maps, and what simt's runtime reports of it.
    renamed: weights that Model and the constructed ModelNew name differently, as (name in Model, name in ModelNew).
    missing: buffers of Model that the constructed ModelNew lacks.
    """

    def __init__(self, client: Client, source: Source, problem: Problem, limits: Limits, gpu: bool):
        self.client = client
        self.source = source
        self.problem = problem
        self.limits = limits
        self.gpu = gpu
        self.renamed: list[tuple[str, str]] = []
        self.missing: list[str] = []

    @functools.cached_property
    def exchange(self) -> Bytes | GpuMemory:
        """Return how tensors get to the worker and back. It is first used when the worker is ready."""
        if self.gpu:
            return GpuMemory()
        return Bytes() if self.client.monitor is None else LentMemory(self.client, self.client.monitor)

    @property
    def device(self) -> str:
        """Return torch's name of the device that the submission runs on."""
        return "cuda" if self.gpu else "cpu"

    def query(
        self,
        command: protocol.Command,
        doing: str,
        case: str | None,
        extra_bytes: int = 0,
        orders: Orders | None = None,
    ) -> protocol.Reply:
        """Have the worker carry out a command; return its reply.

        doing: what it does, for a report of its death. extra_bytes: of tensors in the reply. orders: for simt's
        runtime, where the command does not say them.
        """
        try:
            reply = self.client.ask(command, self.limits.own, extra_bytes, orders)
        except (Gone, Late) as error:
            raise FindingError(findings.of_death(error, self.source, case, doing)) from None
        if isinstance(reply, protocol.Failure):
            raise FindingError(findings.of_failure(reply, self.source, self.client.sources, case, type(command)))
        return reply

    def construct(self, trial: Trial, guard: str | None) -> None:
        """Construct ModelNew with this case's arguments and weights."""
        reply = self.query(self.construct_command(trial, guard), "ModelNew(...)", trial.case.name)
        if not isinstance(reply, protocol.Constructed):
            raise FindingError(findings.of_nonsense(trial.case.name))
        self.renamed, self.missing = reply.renamed, reply.missing

    def construct_command(self, trial: Trial, guard: str | None) -> protocol.Construct:
        """Return the command of construct()."""
        instance = trial.instance
        return protocol.Construct(
            args=protocol.pack(list(instance.init_args)),
            kwargs=protocol.pack(dict(instance.init_kwargs)),
            state={name: protocol.pack(value) for name, value in instance.weights().items()},
            model_source=self.problem.text,
            model_path=str(self.problem.path),
            overrides=protocol.pack(dict(trial.case.set) | self.problem.overrides),
            guard=guard,
            seconds=self.limits.own,
            buffers=list_buffers(instance.model),
            weight_seed=instance.weight_seed,
        )

    def run_forward(self, trial: Trial, how: How = IN_ORDER, calls: int = 1) -> list[Call]:
        """Call forward so many times on the case's inputs and compare each result with the expected outputs."""
        reply = self.forward(trial, how, calls)
        if len(reply.runs) != calls:
            raise FindingError(findings.of_nonsense(trial.case.name))
        if self.client.monitor is not None:
            facts.confirm_launches([run.launches for run in reply.runs], self.client.report, trial.case.name)
        made = []
        for position, run in enumerate(reply.runs, -calls):  # the last calls since the last release_memory()
            outputs = self.collect_outputs(trial, run, position)
            difference = tolerance.compare(outputs, trial.expected, trial.eager, trial.case, trial.noise)
            run.launches = self.list_launches(run.launches)
            made.append(Call(run, outputs, difference, self.exchange.modified(run, position), self._writes(position)))
        return made

    def list_launches(self, claimed: list[protocol.Launch]) -> list[protocol.Launch]:
        """Return a run's launches: those that simt's runtime reports, where it does."""
        return facts.list_launches(claimed, self.client.report) if self.client.monitor is not None else claimed

    def _writes(self, position: int) -> dict[int, Write]:
        if not isinstance(self.exchange, LentMemory):
            return {}
        return self.exchange.writes(self.exchange.calls + position)

    def _find_defects(self, claimed: list[protocol.Found], case: str) -> list[protocol.Found]:
        """Return what the checks found in the last command. Raises FindingError if they could not look."""
        if self.client.monitor is None:
            return claimed
        facts.confirm_checks(self.client.report, case)
        return facts.find_defects(claimed, self.client.report, case)

    def begin(self, how: How) -> None:
        """Let what is lent from now on overwrite what was lent for the last command."""
        if isinstance(self.exchange, LentMemory):
            self.exchange.begin("end" if how.check else how.guard)

    def forward(self, trial: Trial, how: How, calls: int) -> protocol.Outputs:
        """Call forward so many times on the case's inputs; return what the worker says of it."""
        size = sum(t.numel() * t.element_size() for t in trial.eager)
        self.begin(how)
        command = protocol.Forward(
            batches=[self.exchange.inputs(trial.instance.inputs) for _ in range(calls)],
            outputs=[self.exchange.rooms(trial.eager) for _ in range(calls)] if self.gpu else [],
            schedule=how.schedule,
            guard=how.guard,
            kernel_seconds=self.limits.checked_kernel if how.check else self.limits.kernel,
            seconds=self.limits.own,
            max_bytes=4 * size + MESSAGE_BYTES,
            check=how.check,
            watch=how.watch,
        )
        room = calls * (command.max_bytes + MESSAGE_BYTES)
        reply = self.query(command, "forward", trial.case.name, room, self._make_orders(command, how, trial.eager))
        if not isinstance(reply, protocol.Outputs):
            raise FindingError(findings.of_nonsense(trial.case.name))
        if how.check:
            reply.found = self._find_defects(reply.found, trial.case.name)
        return reply

    def _make_orders(
        self, command: protocol.Forward | protocol.Gradient, how: How, outputs: list[torch.Tensor]
    ) -> Orders:
        """Return the orders for simt's runtime. They say more than the command, which the submission's Python can read.

        outputs: what the run should return.
        """
        orders = dataclasses.replace(make_orders(command), idle=how.idle, watch=how.unseen)
        floating = [one for one in outputs if one.is_floating_point() and one.numel()]
        if not how.unseen or not floating:
            return orders
        least = min(one.numel() for one in floating)  # bytes: an element has one at least
        element = max(4, min(one.element_size() for one in floating))  # halves are compared as they come from floats
        return dataclasses.replace(orders, record=element, least=least)

    def collect_outputs(self, trial: Trial, run: protocol.Run, position: int) -> list[torch.Tensor]:
        """Return a run's tensors; one that was not sent has its shape and dtype alone, on the device "meta"."""
        case = trial.case.name
        if mismatch := _kind_mismatch(trial, run):
            raise FindingError(_finding(Reason.wrong_type, mismatch, case))
        if mismatch := _size_mismatch(trial, run):
            raise FindingError(_finding(Reason.wrong_shape, mismatch, case))
        try:
            outputs = self.exchange.results(run, position)
        except ChannelError:
            raise FindingError(findings.of_nonsense(case)) from None
        made: list[torch.Tensor] = []
        for result, output, eager in zip(run.results, outputs, trial.eager):
            if result.device != self.device:
                message = f"The output is on the device {result.device[:20]!r}, not on {self.device!r}."
                raise FindingError(_finding(Reason.wrong_device, message, case))
            if result.dtype not in DTYPES:
                message = f"The dtype is {result.dtype[:40]}, not {str(eager.dtype).split('.')[1]}."
                raise FindingError(_finding(Reason.wrong_dtype, message, case))
            if output is None:
                if not protocol.is_shape(result.shape) or is_like(result, eager):  # the latter could have been sent
                    raise FindingError(findings.of_nonsense(case))
                output = torch.empty(result.shape, dtype=DTYPES[result.dtype], device="meta")
            made.append(output)
        return made

    def run_backward(
        self, trial: Trial, right: ExpectedGradients, how: How = IN_ORDER, strided: bool = False, other: bool = False
    ) -> Pass:
        """Run one forward and backward. `made` is empty where the result has no graph, or the checks found something.

        strided: the upstream gradient is not contiguous. other: forward runs again, on other values, before backward.
        """
        case = trial.case.name
        size = sum(t.numel() * t.element_size() for t in right.eager)
        self.begin(how)
        changed = [_change(value) for value in trial.instance.inputs] if other else []
        command = protocol.Gradient(
            inputs=self.exchange.inputs(trial.instance.inputs),
            differentiable=right.inputs,
            parameters=right.parameters,
            upstream=[],
            strided=strided,
            other=self.exchange.inputs(changed) if other else [],
            outputs=self.exchange.rooms(right.eager),
            schedule=how.schedule,
            guard=how.guard,
            kernel_seconds=self.limits.checked_kernel if how.check else self.limits.kernel,
            seconds=self.limits.own,
            max_bytes=4 * size + MESSAGE_BYTES,
            check=how.check,
            watch=how.watch,
            pause=True,
        )
        upstream = self.exchange.inputs(right.upstream)
        recorded = self.query(command, "forward", case)
        if not isinstance(recorded, protocol.Recorded):
            raise FindingError(findings.of_nonsense(case))
        found = self._find_defects(recorded.found, case) if how.check else []
        kinds = set(self.client.report.kinds)
        if not recorded.graph or found:
            return Pass(protocol.Gradients(graph=recorded.graph, found=found), [], kinds=kinds)
        orders = self._make_orders(command, how, right.eager)
        second = protocol.Backward(upstream, self.limits.own)
        reply = self.query(second, "backward", case, command.max_bytes + MESSAGE_BYTES, orders)
        if not isinstance(reply, protocol.Gradients):
            raise FindingError(findings.of_nonsense(case))
        reply.found = self._find_defects(reply.found, case) if how.check else []
        if self.client.monitor is not None:
            facts.confirm_launches([reply.launches], self.client.report, case)
        reply.launches = self.list_launches(reply.launches)
        kinds |= set(self.client.report.kinds)
        if not reply.graph or reply.found:
            return Pass(reply, [], kinds=kinds)
        if len(reply.results) != len(right.names):
            raise FindingError(findings.of_nonsense(case))
        return Pass(reply, self._collect_gradients(trial, right, reply), self._find_written(other), kinds)

    def _find_written(self, other: bool) -> tuple[list[int], bool]:
        """Return what the last backward wrote to. other: whether inputs of another forward were lent too."""
        if not isinstance(self.exchange, LentMemory):
            return [], False
        return sorted(self.exchange.writes(0)), bool(self.exchange.writes(1 + other))

    def _collect_gradients(
        self, trial: Trial, right: ExpectedGradients, reply: protocol.Gradients
    ) -> list[torch.Tensor | None]:
        """Return the gradients; one that was not sent has its shape and dtype alone, on the device "meta"."""
        try:
            made = self.exchange.results(reply, -1)
        except ChannelError:
            raise FindingError(findings.of_nonsense(trial.case.name)) from None
        for number, (result, eager) in enumerate(zip(reply.results, right.eager)):
            if result is None or made[number] is not None:
                continue
            known = result.dtype in DTYPES and protocol.is_shape(result.shape)
            if not known or is_like(result, eager):  # the latter could have been sent
                raise FindingError(findings.of_nonsense(trial.case.name))
            made[number] = torch.empty(result.shape, dtype=DTYPES[result.dtype], device="meta")
        return made

    def release_memory(self) -> None:
        """On a GPU, have the worker unmap the judge's memory, then free it."""
        if not self.gpu:
            return
        with contextlib.suppress(FindingError):
            if self.client.process.alive():
                self.query(protocol.Release(), "the release", None)
        self.exchange.free()


def is_like(result: protocol.Result, tensor: torch.Tensor) -> bool:
    """Return whether a tensor that the worker describes has this one's shape and dtype."""
    return (result.shape, result.dtype) == (list(tensor.shape), protocol.name_of(tensor.dtype))


def _with_article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _kind_mismatch(trial: Trial, run: protocol.Run) -> str:
    """Return how forward returned something else than Model does (a tuple, None, …); empty if it did not."""
    count, theirs = len(trial.eager), trial.instance.kind
    plain = run.kind == "Tensor" if count == 1 else run.kind.endswith(f" of {count} tensors")
    if not plain and run.kind != theirs:
        wanted = "a tensor" if count == 1 else f"{count} tensors"
        if theirs.endswith(("thing", "things")):
            wanted = f"what Model returns ({theirs})"
        return (
            f"forward returned {'nothing (None)' if run.kind == 'NoneType' else _with_article(run.kind)}, not {wanted}."
        )
    if len(run.results) != count:  # a number where Model has None, say
        return f"forward returned {len(run.results)} tensors and numbers, Model {count}."
    return ""


def _size_mismatch(trial: Trial, run: protocol.Run) -> str:
    """Return which result has a shape that the judge cannot make a tensor of; empty if there is none.

    A worker can have such a tensor without the memory for it, by expand() or with no elements.
    """
    for result, eager in zip(run.results, trial.eager):
        if not protocol.is_shape(result.shape):
            return f"The shape is {result.shape}, not {list(eager.shape)}."
    return ""


def _change(value: object) -> object:
    """Return an input of the same kind with other values."""
    return change_values(value, lambda values: 1 - values) if is_floating(value) else value


def _finding(reason: Reason, message: str, case: str | None) -> Finding:
    return Finding(reason, message, [Evidence(case=case)])
