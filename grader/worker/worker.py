"""Carries out the judge's commands with the submission: builds it, runs it, and describes what it did."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

import torch

import simt
from grader.worker import protocol, tallies
from grader.worker.builds import BuildReporter
from grader.worker.channel import Channel, ChannelError
from grader.worker.device import ClearedAllocations, Device, has_simt, list_written
from grader.worker.failures import classify_backward_error, describe_exception, describe_findings
from grader.worker.operators import list_operators, watch
from grader.worker.outputs import compute_gradients, find_floating, flatten, make_alike, make_noncontiguous
from grader.worker.protocol import Answer, Failure, Run
from grader.worker.weights import Match, load_weights

MODULE = "submission"
SPIN_S = 0.05  # longer than writing the inputs of a batch takes

Half = TypeVar("Half", protocol.Recorded, protocol.Gradients)


def _not_constructed(*_inputs: object) -> object:
    raise RuntimeError("ModelNew has not been constructed")


class Worker:
    """Serves one judge. held: the results of the last batch, kept so that no later output can reuse their memory.

    One method per command, named as the message type in lower case; the class stays whole because they share the model.
    """

    def __init__(self, channel: Channel, gpu: bool):
        self.channel = channel
        self.device = Device(gpu)
        self.builds = BuildReporter(self.reply, gpu)
        self.pid = os.getpid()
        self.number = 0
        self.path = ""
        self.module = types.ModuleType(MODULE)
        self.model: Callable[..., Any] = _not_constructed
        self.match = Match({})
        self.prepared: list[list[Any]] = []
        self.wanted: list[list[torch.Tensor | None]] = []
        self.upstream: list[list[torch.Tensor]] = []
        self.held: list[list[torch.Tensor]] = []
        self.in_backward = False
        self.recorded: tuple[protocol.Gradient, list[torch.Tensor | None], list[torch.Tensor]] | None = None

    # -- conversation --

    def serve(self) -> None:
        """Carry out the judge's commands until it closes the connection."""
        self.reply(protocol.Ready({"torch": str(torch.__version__), "python": sys.version.split()[0]}))
        while True:
            order = self.channel.order()
            # the next batch may be timed: a worker that sleeps meanwhile begins late, the later the longer it has slept
            self.channel.spin_seconds = SPIN_S if isinstance(order.command, protocol.Batch) else 0.0
            self.number = order.number
            self.reply(self.carry_out(order.command))

    def reply(self, reply: protocol.Reply) -> None:
        """Answer the current command. A forked copy of this process exits here instead."""
        if os.getpid() != self.pid:
            os._exit(0)
        self.channel.send(Answer(self.number, reply))

    def carry_out(self, command: protocol.Command) -> protocol.Reply:
        """Carry out one command. Whatever the submission raises becomes a Failure."""
        name = type(command).__name__.lower()
        self.in_backward = False
        seconds = getattr(command, "seconds", 0)
        if seconds:
            faulthandler.dump_traceback_later(seconds)
        try:
            return getattr(self, name)(command)
        except ChannelError:
            raise
        except BaseException as error:
            reason = {"build": "import_error", "construct": "init_error"}.get(name, "exception")
            if self.in_backward:
                reason = classify_backward_error(error)
            return describe_exception(error, reason, self.path)
        finally:
            if seconds:
                faulthandler.cancel_dump_traceback_later()

    # -- building --

    def build(self, command: protocol.Build) -> protocol.Reply:
        """Import the submission under a private name."""
        self.path = command.path
        self.builds.start(command.path, command.instead, command.files, command.modules)
        if command.instead:
            simt.runtime.extension.build_ahead = ()  # mutants are not run with the checks on
        self.module = types.ModuleType(MODULE)
        self.module.__file__ = command.path
        sys.modules[MODULE] = self.module
        with self.device.submission():
            exec(compile(command.source, command.path, "exec", dont_inherit=True), self.module.__dict__)
        if not callable(getattr(self.module, "ModelNew", None)):
            return Failure("no_model_new", "NameError", "after the import the file has no class ModelNew")
        return protocol.Done()

    def construct(self, command: protocol.Construct) -> protocol.Reply:
        """Construct ModelNew with the judge's arguments, from its seed if it gives one, and load its weights."""
        args, kwargs = self.device.unpack(command.args), self.device.unpack(command.kwargs)
        with self.device.running(guard=command.guard, modeled=command.gpu), self.device.submission():
            if command.weight_seed is not None:
                random.seed(command.weight_seed)
                torch.manual_seed(command.weight_seed)
            model = self.module.ModelNew(*args, **kwargs)
            if self.device.gpu and isinstance(model, torch.nn.Module):
                model = model.cuda()
            # unpacked inside the context, so that guarded weights lie before a guard page as well
            state = {name: self.device.unpack(value) for name, value in command.state.items()}
            problem = self._load_weights(model, state, args, kwargs, command)
        self.model = model
        return problem or protocol.Constructed(self.match.list_renamed(), self.match.list_missing())

    def _load_weights(
        self,
        model: Any,
        state: dict[str, torch.Tensor],
        args: list[Any],
        kwargs: dict[str, Any],
        command: protocol.Construct,
    ) -> Failure | None:
        """Load the model's weights, by its load_reference if it has one. Return the failure if they do not fit."""
        self.match = Match({})
        if hasattr(model, "load_reference"):
            reference = self._make_reference_class(command)(*args, **kwargs)
            reference = reference.cuda() if self.device.gpu else reference
            reference.load_state_dict(state)
            with torch.no_grad():
                model.load_reference(reference)
            return None
        self.match = load_weights(model, state, command.buffers)
        return Failure("missing_weights", "", self.match.misfits) if self.match.misfits else None

    def _make_reference_class(self, command: protocol.Construct) -> type:
        """Return the problem's Model, with this case's sizes."""
        module = types.ModuleType("problem")
        module.__file__ = command.model_path
        sys.modules["problem"] = module
        exec(compile(command.model_source, command.model_path, "exec", dont_inherit=True), module.__dict__)
        module.__dict__.update(protocol.unpack(command.overrides))
        return module.Model

    # -- running --

    def forward(self, command: protocol.Forward) -> protocol.Reply:
        """Run forward on each list of inputs and describe what it returned."""
        if self.builds.replacements:
            self.builds.select_mutant(command.mutant)
        if command.check and not self.device.gpu and has_simt():
            runs: list[Run] = []
            checks = simt.check(schedule=command.schedule, seconds=command.kernel_seconds)
            # a KernelError is in the report too, perhaps behind the finding that caused it
            with checks as report, contextlib.suppress(simt.KernelError):
                runs = self._run_batches(command)
                self.held = []  # memory that a result owns is not leaked
            return protocol.Outputs(runs, describe_findings(report))
        with self.device.running(command.schedule, command.guard, command.kernel_seconds):
            return protocol.Outputs(self._run_batches(command))

    def _run_batches(self, command: protocol.Forward) -> list[Run]:
        """Run forward once per list of inputs.

        Nothing is freed while the command runs, so that a reused address means a reused tensor.
        """
        self.held = []
        with torch.no_grad():
            return [
                self._run_once(packed, command.outputs[position] if command.outputs else [], command)
                for position, packed in enumerate(command.batches)
            ]

    def _run_once(self, packed: list[protocol.Value], buffers: list[protocol.Handle], command: protocol.Forward) -> Run:
        inputs = [self.device.unpack(value) for value in packed]
        lent = [isinstance(value, protocol.Lent) for value in packed]
        before = [None if mapped else self.device.snapshot(value) for value, mapped in zip(inputs, lent)]
        self.device.poison_allocator(buffers)
        self.device.take_launches()
        with watch(command.watch, self.path) as watched, self.device.submission():
            output = self.model(*inputs)
        self.device.synchronise()
        launches = self.device.take_launches()
        tensors = flatten(output)
        results = [self.device.deliver(tensor, buffers, n, command.max_bytes) for n, tensor in enumerate(tensors)]
        run = Run(
            kind=protocol.kind_of(output),
            results=results,
            modified=[n for n, data in enumerate(before) if data is not None and protocol.raw(inputs[n]) != data],
            aliases=[n for n, value in enumerate(inputs) if any(protocol.overlap(one, value) for one in tensors)],
            reuses=any(protocol.overlap(one, old) for one in tensors for kept in self.held for old in kept),
            launches=launches,
            operators=list_operators(watched),
            written=list_written() if any(lent) else [],
        )
        self.held.append(tensors)
        return run

    def gradient(self, command: protocol.Gradient) -> protocol.Reply:
        """Run forward with gradients recorded, then backward unless the command says to pause."""
        if self.builds.replacements:
            self.builds.select_mutant(command.mutant)
        self.recorded = None
        reply = self._run_half(command, lambda: self._record(command), protocol.Recorded(graph=True))
        return reply if command.pause or not reply.graph or reply.found else self._differentiate(command.upstream)

    def backward(self, command: protocol.Backward) -> protocol.Reply:
        """Run the backward of the forward that was recorded."""
        return self._differentiate(command.upstream)

    def _differentiate(self, upstream: list[protocol.Value]) -> protocol.Gradients:
        """Return the gradients of the recorded forward, and what the checks found."""
        if self.recorded is None:
            return protocol.Gradients(graph=False)
        (command, wanted, outputs), self.recorded = self.recorded, None
        return self._run_half(
            command,
            lambda: self._run_backward(command, wanted, outputs, upstream),
            protocol.Gradients(graph=True),
        )

    def _run_half(self, command: protocol.Gradient, run: Callable[[], Half], found: Half) -> Half:
        """Run one half of a Gradient command as it says. found: the reply if a kernel fails with the checks on."""
        if command.check and not self.device.gpu and has_simt():
            checks = simt.check(schedule=command.schedule, seconds=command.kernel_seconds)
            with checks as report, contextlib.suppress(simt.KernelError):  # as in forward
                found = run()
                self.held = []
            found.found = describe_findings(report)
            return found
        with self.device.running(command.schedule, command.guard, command.kernel_seconds):
            return run()

    def _record(self, command: protocol.Gradient) -> protocol.Recorded:
        """Run forward with gradients recorded, and keep what its backward needs."""
        inputs = [self.device.unpack(value) for value in command.inputs]
        wanted = self._record_gradients(inputs, command)
        self.held = []
        with torch.enable_grad():
            outputs = find_floating(self._call_model(inputs))
            if command.other:
                others = [self.device.unpack(value) for value in command.other]
                self._record_gradients(others, command)
                self.held.append(find_floating(self._call_model(others)))
        self.device.synchronise()
        graph = any(tensor.requires_grad for tensor in outputs)
        self.recorded = (command, wanted, outputs) if graph else None
        return protocol.Recorded(graph)

    def _call_model(self, inputs: list[Any]) -> object:
        with self.device.submission():
            return self.model(*inputs)

    def _run_backward(
        self,
        command: protocol.Gradient,
        wanted: list[torch.Tensor | None],
        outputs: list[torch.Tensor],
        packed: list[protocol.Value],
    ) -> protocol.Gradients:
        """Run torch.autograd.grad for what a Gradient command requests."""
        given: list[torch.Tensor] = [self.device.unpack(value) for value in packed]
        upstream = [make_noncontiguous(value) if command.strided else value for value in given]
        watched = [*wanted, *given, *outputs]
        before = [self.device.snapshot(value) for value in watched]
        self.device.poison_allocator(command.outputs)
        self.in_backward = True
        self.device.take_launches()
        with watch(command.watch, self.path) as seen, self.device.submission():
            found = compute_gradients(outputs, [value for value in wanted if value is not None], upstream)
        self.device.synchronise()
        launches, self.in_backward = self.device.take_launches(), False
        results = [None if value is None else found.pop(0) for value in wanted]
        self.held.append([value for value in results if value is not None])
        return protocol.Gradients(
            graph=True,
            results=[
                None if value is None else self.device.deliver(value, command.outputs, n, command.max_bytes)
                for n, value in enumerate(results)
            ],
            unknown=[n for n, value in enumerate(wanted) if value is None],
            modified=[n for n, data in enumerate(before) if data != self.device.snapshot(watched[n])],
            launches=launches,
            operators=list_operators(seen),
        )

    def _record_gradients(
        self, inputs: list[Any], command: protocol.Gradient | protocol.Prepare
    ) -> list[torch.Tensor | None]:
        """Turn on gradients of the requested inputs and parameters and return them; None for an unknown parameter."""
        own = dict(self.model.named_parameters()) if isinstance(self.model, torch.nn.Module) else {}
        found = [inputs[n] for n in command.differentiable] + [
            own.get(self.match.pairs.get(name, name)) for name in command.parameters
        ]
        return [value if value is None else value.requires_grad_() for value in found]

    # -- timing --

    def prepare(self, command: protocol.Prepare) -> protocol.Reply:
        """Keep the inputs of later batches."""
        self.prepared = [[self.device.unpack(value) for value in one] for one in command.batches]
        self.upstream = [[self.device.unpack(value) for value in one] for one in command.upstream]
        # here, because the names of the parameters take longer to find than some calls
        self.wanted = [self._record_gradients(one, command) for one in self.prepared] if self.upstream else []
        return protocol.Prepared(self.device.locate(self.prepared), self.device.locate(self.upstream))

    def batch(self, command: protocol.Batch) -> protocol.Reply:
        """Run the timed calls: nothing but these calls, one wait for the device, and where their results lie."""
        self.held = []
        model = getattr(self.model, command.model) if command.model else self.model
        indices = command.indices[: command.calls or None]
        begun = self.device.mark_time()
        if self.upstream:
            outputs = [self._run_both_ways(model, n) for n in indices]
        else:
            with torch.no_grad():
                outputs = [model(*self.prepared[index]) for index in indices]
        outputs += [make_alike(outputs[0]) for _ in command.indices[len(indices) :]]
        ended = self.device.mark_time()
        # first of all: what follows belongs to the way back, also where the GPU has waited for the host and is done
        self.device.synchronise()
        self.held = [flatten(output) for output in outputs]
        located = self.device.locate(self.held)
        seconds = begun.elapsed_time(ended) / 1e3 if begun is not None and ended is not None else 0.0
        return protocol.Timed(located, seconds)

    def _run_both_ways(self, model: Callable[..., Any], index: int) -> list[torch.Tensor | None]:
        """Return the floating outputs and the gradients of one timed forward and backward."""
        wanted = [value for value in self.wanted[index] if value is not None]
        with torch.enable_grad():
            outputs = find_floating(model(*self.prepared[index]))
            gradients = compute_gradients(outputs, wanted, self.upstream[index])
        return [*(output.detach() for output in outputs), *gradients]

    # -- counting --

    def ahead(self, command: protocol.Ahead) -> protocol.Reply:
        """Begin to build the kernels for counting."""
        simt.runtime.extension.build_others("count")
        return protocol.Done()

    def tally(self, command: protocol.Tally) -> protocol.Reply:
        """Run one call on the first prepared inputs with counters."""
        self.held = []
        counting = simt.count(sample=command.blocks, partial=True, seconds=command.kernel_seconds, device=command.gpu)
        with counting as report, self.device.submission(), ClearedAllocations():
            if self.upstream:
                self._run_both_ways(self.model, 0)
            else:
                with torch.no_grad():
                    self.model(*self.prepared[0])
        self.prepared, self.upstream, self.wanted = [], [], []
        return tallies.describe(report)

    def clear(self, command: protocol.Clear) -> protocol.Reply:
        """Overwrite the results of the last batch and drop them."""
        with torch.no_grad():
            for tensor in (one for tensors in self.held for one in tensors):
                tensor.zero_()
        self.device.synchronise()
        self.held = []
        return protocol.Done()

    def release(self, command: protocol.Release) -> protocol.Reply:
        """Unmap the judge's memory and drop every result."""
        self.prepared, self.upstream, self.wanted, self.held = [], [], [], []
        self.device.release()
        return protocol.Done()
