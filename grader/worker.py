"""The untrusted side: imports the submission, runs what the judge sends, answers with results or with what went wrong.

Started as `python -m grader.worker FD MEMORY_BYTES JUDGE_PID`. Of this project it imports channel and simt alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import functools
import inspect
import os
import re
import resource
import signal
import socket
import sys
import time
import traceback
import types
from pathlib import Path

import simt
import torch

from grader import channel
from grader.channel import MAX_SOURCE, MAX_TEXT, Answer, Channel, ChannelError, Failure, Note, Run

GIB = 1 << 30
MODULE = "submission"
PR_SET_PDEATHSIG = 1

# What a CUDA error says -> the reason it stands for.
CUDA_ERRORS = {
    "an illegal memory access": "illegal_address",
    "invalid global address": "illegal_address",
    "misaligned address": "misaligned",
    "device-side assert": "device_assert",
    "invalid configuration argument": "launch_error",
    "invalid argument": "launch_error",
    "too many resources requested": "launch_error",
    "no kernel image": "launch_error",
    "the launch timed out": "kernel_timeout",
    "stack overflow": "stack_overflow",
    "unspecified launch failure": "illegal_address",
}


# --- limits ----------------------------------------------------------------------------------------------------------


def limit_resources(memory: int) -> None:
    """Bound memory (0: not at all, as CUDA needs), file size and processes; no core file."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 4 * GIB)
    _lower(resource.RLIMIT_NPROC, 8192)
    if memory:
        _lower(resource.RLIMIT_AS, memory)


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(which, (value, value))


def die_with(judge: int) -> None:
    """Have the kernel end this process when the judge's ends (0: the sandbox sees to it)."""
    if not judge:
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != judge:
        os._exit(1)


# --- what went wrong -------------------------------------------------------------------------------------------------


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Both ends of a long text, without what UTF-8 cannot hold."""
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[: limit // 2] + "\n[...]\n" + text[-limit // 2 :]


def line_of(error: BaseException, path: str) -> int | None:
    """The innermost line of the submission in the traceback."""
    lines = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == path:
            lines.append(line)
    return lines[-1] if lines else None


def failure(error: BaseException, reason: str, path: str) -> Failure:
    """What the judge is told about an exception; `reason` is for one that says nothing more about itself."""
    try:
        text = shorten(str(error))
    except Exception:
        text = "(its message could not be read)"
    made = Failure(reason, shorten(type(error).__name__, 200), text, line_of(error, path))
    _specify(made, error)
    return made


def _specify(made: Failure, error: BaseException) -> None:
    """Put in what is known about errors of simt, of memory, of CUDA and of the compiler."""
    notes = getattr(error, "grader_notes", None)
    if notes is not None:
        made.reason, made.notes = error.grader_reason, notes
    elif isinstance(error, simt.BuildError):
        made.reason, made.notes = _compile_reason(error), _diagnostics(error)
    elif isinstance(error, simt.KernelError):
        _kernel(made, error)
    elif isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _is_memory(made.message):
        made.reason = "out_of_memory"
    elif isinstance(error, RuntimeError) and "CUDA" in made.message:
        _cuda(made)
    elif isinstance(error, ImportError) and "undefined symbol" in made.message:
        made.reason = "link_error"
        name = demangle(made.message.split("undefined symbol:")[1].split()[0])
        made.notes = [Note("", None, "error", f"`{name}` is declared and called, but no source defines it.", "")]
    elif isinstance(error, SystemExit):
        made.message = f"the code called exit({made.message})"


def _is_memory(message: str) -> bool:
    said = ("can't allocate memory", "There is no memory for", "not enough memory", "CUDA out of memory")
    return any(words in message for words in said)


def _cuda(made: Failure) -> None:
    for words, reason in CUDA_ERRORS.items():
        if words in made.message:
            made.reason = reason
            made.message = made.message.splitlines()[0]
            made.broken = reason != "launch_error"


def _compile_reason(error: simt.BuildError) -> str:
    for kind, reason in (
        (simt.UndeclaredFunction, "undeclared_function"),
        (simt.MissingSources, "missing_cpp_sources"),
        (simt.Unsupported, "unsupported_cuda"),
        (simt.LinkError, "link_error"),
        (simt.NoCompiler, "no_compiler"),
        (simt.CacheError, "grader_error"),
    ):
        if isinstance(error, kind):
            return reason
    return "compile_error"


def _diagnostics(error: BaseException) -> list[Note]:
    notes = []
    for seen in list(getattr(error, "diagnostics", None) or [])[:50]:
        message, text = shorten(seen.message, 2000), shorten(seen.text, 500)
        notes.append(Note(seen.source, seen.line or None, seen.severity, message, text))
    return notes


def _kernel(made: Failure, error: BaseException) -> None:
    made.reason, made.message = error.reason, shorten(error.message)
    made.kernel, made.source, made.source_line = error.kernel or None, error.source or None, error.line or None
    made.block, made.thread = _ints(error.block), _ints(error.thread)


def _ints(values: object) -> list[int] | None:
    return [int(value) for value in values] if values is not None else None


# --- builds ----------------------------------------------------------------------------------------------------------

NVCC = re.compile(r"^\S*?(\w+\.(?:cu|cpp))\((\d+)\): (error|warning)[^:]*: (.*)$", re.MULTILINE)
GCC = re.compile(r"^\S*?(\w+\.(?:cu|cpp)):(\d+):(?:\d+:)? (fatal error|error|warning): (.*)$", re.MULTILINE)
UNDECLARED = re.compile(r"[‘'\"](\w+)[’'\"] was not declared|identifier \"(\w+)\" is undefined")


def explain_torch_build(error: RuntimeError, name: str, sources: dict[str, str], functions: list[str]) -> None:
    """Note on a failed build of torch's own load_inline what its compilers said, by the student's lines."""
    text = str(error)
    written = {file: _written(name, file) for file in ("main.cpp", "cuda.cu")}
    notes = []
    for match in (*NVCC.finditer(text), *GCC.finditer(text)):
        file, line, severity, message = match.groups()
        part = "cuda_sources" if file == "cuda.cu" else "cpp_sources"
        notes.append(_place(part, int(line), severity, message, written.get(file, ""), sources.get(part, "")))
    undeclared = [m.group(1) or m.group(2) for m in UNDECLARED.finditer(text)]
    missing = [name for name in functions if name in undeclared]
    if missing and not any(note.line for note in notes):
        empty = not sources.get("cpp_sources", "").strip()
        error.grader_reason = "missing_cpp_sources" if empty else "undeclared_function"
        why = "but cpp_sources is empty: the binding is made there" if empty else "which cpp_sources does not declare"
        said = f"functions= names `{missing[0]}`, {why}. Add its declaration to cpp_sources."
        notes = [Note("cpp_sources", None, "error", said, "")]
    else:
        error.grader_reason = "link_error" if "undefined reference" in text else "compile_error"
    error.grader_notes = [note for note in notes if note.severity != "warning"][:50] or notes[:50]


def demangle(symbol: str) -> str:
    """`run(at::Tensor)` for _Z3runN2at6TensorE."""
    with contextlib.suppress(OSError, AttributeError):
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        function.restype = ctypes.c_char_p
        return (function(symbol.encode(), None, None, None) or symbol.encode()).decode()
    return symbol


def _written(name: str, file: str) -> str:
    """What torch put into its build folder."""
    root = os.environ.get("TORCH_EXTENSIONS_DIR", "")
    with contextlib.suppress(OSError, IndexError):
        return max(Path(root).rglob(f"{name}/{file}"), key=lambda p: p.stat().st_mtime).read_text(encoding="utf-8", errors="replace")
    return ""


def _place(part: str, line: int, severity: str, message: str, written: str, source: str) -> Note:
    """The message at its line in the student's string; torch writes headers of its own before it."""
    lines = written.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    before = written.find(source) if source.strip() else -1
    own = line - written.count("\n", 0, before) if before >= 0 else 0
    inside = 0 < own <= source.count("\n") + 1
    return Note(part, own if inside else None, severity, shorten(message, 2000), shorten(text, 500))


def labelled(**arguments: object) -> dict[str, str]:
    """load_inline's sources under the names that messages use: the whole, and for a list each item as name[i]."""
    found = {}
    for name, given in arguments.items():
        parts = [str(part) for part in given] if isinstance(given, (list, tuple)) else [str(given or "")]
        found[name] = "\n".join(parts)[:MAX_SOURCE]
        left = MAX_SOURCE
        for number, part in enumerate(parts[:20] if len(parts) > 1 else []):
            found[f"{name}[{number}]"] = part[:left]
            left -= len(part[:left])
    return found


def described(report: simt.Report) -> list[channel.Found]:
    """What simt's checks found, errors alone, for the wire."""
    return [
        channel.Found(f.check, shorten(f.message), shorten(f.kernel, 200), shorten(f.source, 200), f.line, *(v and list(v) for v in (f.block, f.thread)))
        for f in report.errors[:20]
    ]


class Worker:
    """Serves one judge. `held` keeps the results of the last batch, so that no later output can reuse their memory."""

    def __init__(self, talk: Channel, gpu: bool):
        self.talk = talk
        self.gpu = gpu
        self.pid = os.getpid()
        self.number = 0
        self.path = ""
        self.module: types.ModuleType | None = None
        self.model = None
        self.mapped = channel.Mapped()
        self.prepared: list[list] = []
        self.asked: channel.Prepare | None = None
        self.upstream: list[torch.Tensor] = []
        self.held: list[list[torch.Tensor]] = []
        self.backward = False  # whether what runs now is a backward
        self.instead: dict[str, str] = {}
        self.extensions: list[str] = []

    # -- conversation --

    def serve(self) -> None:
        """Answer the judge's commands until it hangs up."""
        self.reply(channel.Ready({"torch": str(torch.__version__), "python": sys.version.split()[0]}))
        while True:
            order = self.talk.order()
            self.number = order.number
            self.reply(self.carry_out(order.command))

    def reply(self, reply: channel.Reply) -> None:
        """Answer the command in hand. A forked copy of this process has no business here and ends."""
        if os.getpid() != self.pid:
            os._exit(0)
        self.talk.send(Answer(self.number, reply))

    def carry_out(self, command: channel.Command) -> channel.Reply:
        """Do one command. Whatever the submission raises becomes a Failure."""
        name = type(command).__name__.lower()
        self.backward = False
        seconds = getattr(command, "seconds", 0)
        if seconds:
            faulthandler.dump_traceback_later(seconds)
        try:
            return getattr(self, name)(command)
        except ChannelError:
            raise
        except BaseException as error:
            reason = {"build": "import_error", "construct": "init_error"}.get(name, "exception")
            return failure(error, backward_reason(error) if self.backward else reason, self.path)
        finally:
            if seconds:
                faulthandler.cancel_dump_traceback_later()

    # -- commands --

    def build(self, command: channel.Build) -> channel.Reply:
        """Import the submission under a private name."""
        self.path, self.instead, self.extensions = command.path, command.instead, []
        if command.instead:
            simt.extension.build_ahead = ()  # edits are not run with the checks on
        self.module = types.ModuleType(MODULE)
        self.module.__file__ = command.path
        sys.modules[MODULE] = self.module
        exec(compile(command.source, command.path, "exec", dont_inherit=True), self.module.__dict__)
        if not callable(getattr(self.module, "ModelNew", None)):
            return Failure("no_model_new", "NameError", "after the import the file has no class ModelNew")
        return channel.Done()

    def construct(self, command: channel.Construct) -> channel.Reply:
        """ModelNew with the judge's arguments and weights."""
        args = channel.unpack(command.args, self.mapped.attach)
        kwargs = channel.unpack(command.kwargs, self.mapped.attach)
        with self.running(guard=command.guard):
            model = self.module.ModelNew(*args, **kwargs)
            if self.gpu and isinstance(model, torch.nn.Module):
                model = model.cuda()
            # Unpacked here, so that guarded weights stand against a guard page as well.
            state = {name: channel.unpack(value, self.mapped.attach) for name, value in command.state.items()}
            problem = self.load(model, state, args, kwargs, command)
        self.model = model
        return problem or channel.Done()

    def load(self, model, state: dict, args: list, kwargs: dict, command: channel.Construct) -> Failure | None:
        """Give the model its weights: by load_reference if it has one, else by name. A Failure says what does not fit."""
        if hasattr(model, "load_reference"):
            reference = self.reference(command)(*args, **kwargs)
            reference = reference.cuda() if self.gpu else reference
            reference.load_state_dict(state)
            with torch.no_grad():
                model.load_reference(reference)
            return None
        own = model.state_dict() if isinstance(model, torch.nn.Module) else {}
        unfit = misfits(state, own)
        if unfit:
            return Failure("missing_weights", "", unfit)
        if state:
            model.load_state_dict(state, strict=True)
        return None

    def reference(self, command: channel.Construct) -> type:
        """The problem's Model, with this case's sizes."""
        module = types.ModuleType("problem")
        module.__file__ = command.model_path
        sys.modules["problem"] = module
        exec(compile(command.model_source, command.model_path, "exec", dont_inherit=True), module.__dict__)
        module.__dict__.update(channel.unpack(command.overrides))
        return module.Model

    def forward(self, command: channel.Forward) -> channel.Reply:
        """Run forward on each list of inputs and describe what came back."""
        if self.instead:
            self.choose(command.mutant)
        if command.check and not self.gpu and _simt_works():
            return self.checked(command)
        with self.running(command.schedule, command.guard, command.kernel_seconds):
            return channel.Outputs(self.runs(command))

    def choose(self, mutant: int) -> None:
        """Put one edit of the CUDA sources in force, 0 for none."""
        for path in self.extensions:
            with contextlib.suppress(OSError, ValueError):
                ctypes.c_int.in_dll(ctypes.CDLL(path), "grader_mutant").value = mutant

    def checked(self, command: channel.Forward) -> channel.Reply:
        """The same with all of simt's checks on."""
        runs: list[Run] = []
        with simt.check(schedule=command.schedule, seconds=command.kernel_seconds) as report:
            try:
                runs = self.runs(command)
            except simt.KernelError:
                pass  # it is in the report, maybe behind what caused it
        return channel.Outputs(runs, described(report))

    def runs(self, command: channel.Forward) -> list[Run]:
        """One run for each list of inputs."""
        runs: list[Run] = []
        self.held = []
        # Nothing is freed while the command runs, so that a reused address means a reused tensor.
        with torch.no_grad():
            for position, packed in enumerate(command.batches):
                inputs = [channel.unpack(value, self.mapped.attach) for value in packed]
                before = [raw_or_none(value, self.gpu) for value in inputs]
                room = command.outputs[position] if command.outputs else []
                self.stain(room)
                self.launches()
                output = self.model(*inputs)
                self.synchronise()
                launches = self.launches()
                tensors = flatten(output)
                results = [self.deliver(t, room, n, command.max_bytes) for n, t in enumerate(tensors)]
                runs.append(
                    Run(
                        kind=channel.kind_of(output),
                        results=results,
                        modified=[n for n, data in enumerate(before) if data is not None and channel.raw(inputs[n]) != data],
                        aliases=[n for n, value in enumerate(inputs) if any(channel.overlap(t, value) for t in tensors)],
                        reuses=any(channel.overlap(t, old) for t in tensors for one in self.held for old in one),
                        launches=launches,
                    )
                )
                self.held.append(tensors)
        return runs

    def gradient(self, command: channel.Gradient) -> channel.Reply:
        """Run forward and backward once and describe the gradients that came back."""
        if self.instead:
            self.choose(command.mutant)
        if command.check and not self.gpu and _simt_works():
            made = channel.Gradients(graph=True)
            with simt.check(schedule=command.schedule, seconds=command.kernel_seconds) as report:
                try:
                    made = self.differentiate(command)
                except simt.KernelError:
                    pass  # as above
            made.found = described(report)
            return made
        with self.running(command.schedule, command.guard, command.kernel_seconds):
            return self.differentiate(command)

    def differentiate(self, command: channel.Gradient) -> channel.Gradients:
        """Forward with gradients recorded, then torch.autograd.grad for what is wanted."""
        inputs = [channel.unpack(value, self.mapped.attach) for value in command.inputs]
        wanted = self.wanted(inputs, command)
        given = [channel.unpack(value, self.mapped.attach) for value in command.upstream]
        upstream = [in_pieces(value) if command.strided else value for value in given]
        self.held = []
        with torch.enable_grad():
            outputs = floating(self.model(*inputs))
            if command.other:
                others = [channel.unpack(value, self.mapped.attach) for value in command.other]
                self.wanted(others, command)
                self.held.append(floating(self.model(*others)))
        self.synchronise()
        if not any(tensor.requires_grad for tensor in outputs):
            return channel.Gradients(graph=False)
        mine = [*wanted, *given, *outputs]
        before = [value if value is None else raw_or_none(value, self.gpu) for value in mine]
        self.stain(command.outputs)
        self.backward = True
        self.launches()
        made = gradients(outputs, [value for value in wanted if value is not None], upstream)
        self.synchronise()
        launches, self.backward = self.launches(), False
        made = [None if value is None else made.pop(0) for value in wanted]
        self.held.append([value for value in made if value is not None])
        return channel.Gradients(
            graph=True,
            results=[None if v is None else self.deliver(v, command.outputs, n, command.max_bytes) for n, v in enumerate(made)],
            unknown=[n for n, value in enumerate(wanted) if value is None],
            modified=[n for n, data in enumerate(before) if data is not None and channel.raw(mine[n]) != data],
            launches=launches,
        )

    def wanted(self, inputs: list, command: channel.Gradient | channel.Prepare) -> list[torch.Tensor | None]:
        """The inputs and the parameters whose gradients are wanted, told to record them; None for a parameter that there is not."""
        own = dict(self.model.named_parameters()) if isinstance(self.model, torch.nn.Module) else {}
        found = [inputs[n] for n in command.differentiable] + [own.get(name) for name in command.parameters]
        return [value if value is None else value.requires_grad_() for value in found]

    def deliver(self, tensor: torch.Tensor, room: list, number: int, max_bytes: int) -> channel.Result:
        """One output as it is; its elements go into the judge's buffer, or along as bytes if they are not too many."""
        result = channel.Result(channel.name_of(tensor.dtype), list(tensor.shape), tensor.device.type, None)
        if room:
            target = room[number] if number < len(room) else None
            fits = target and (target.dtype, target.shape) == (result.dtype, result.shape)
            if fits and tensor.device.type == "cuda":
                self.mapped.attach(target).copy_(tensor)
                self.synchronise()
        elif travels(tensor) and tensor.numel() * tensor.element_size() <= max_bytes:
            result.data = channel.raw(tensor)
        return result

    def stain(self, room: list[channel.Handle]) -> None:
        """On a GPU, leave NaNs in the memory that torch.empty will hand out next for outputs of these shapes.

        simt marks new memory itself; here the allocator's habit of reusing a block of the same size does it.
        """
        stained = []
        for target in room:
            dtype = channel.DTYPES[target.dtype]
            if dtype.is_floating_point:
                stained += [torch.full(target.shape, float("nan"), dtype=dtype, device="cuda") for _ in range(2)]

    def prepare(self, command: channel.Prepare) -> channel.Reply:
        """Map the inputs of batches to come."""
        self.prepared = [[channel.unpack(value, self.mapped.attach) for value in one] for one in command.batches]
        self.upstream = [channel.unpack(value, self.mapped.attach) for value in command.upstream]
        self.asked = command
        return channel.Done()

    def batch(self, command: channel.Batch) -> channel.Reply:
        """The timed command: nothing but the calls and one wait for the device."""
        self.held = []
        if self.upstream:
            outputs = [self.there_and_back(self.prepared[index]) for index in command.indices]
        else:
            with torch.no_grad():
                outputs = [self.model(*self.prepared[index]) for index in command.indices]
        self.synchronise()
        self.held = [flatten(output) for output in outputs]
        return channel.Done()

    def there_and_back(self, inputs: list) -> list[torch.Tensor]:
        """The gradients of one timed forward and backward."""
        wanted = self.wanted(inputs, self.asked)
        with torch.enable_grad():
            return gradients(floating(self.model(*inputs)), wanted, self.upstream)

    def collect(self, command: channel.Collect) -> channel.Reply:
        """Show the judge one result of the last batch."""
        for target, tensor in zip(command.outputs, self.held[command.position]):
            self.mapped.attach(target).copy_(tensor)
        self.synchronise()
        return channel.Done()

    def release(self, command: channel.Release) -> channel.Reply:
        """Let go of the judge's memory and of every result."""
        self.prepared, self.upstream, self.held = [], [], []
        self.synchronise()
        self.mapped.release()
        if self.gpu:
            torch.cuda.empty_cache()  # the judge needs the card for the right answers
        return channel.Done()

    # -- help --

    def running(self, schedule: str | int = "forward", guard: str | None = None, seconds: float = 10.0):
        """simt's context for these options; nothing on a GPU, or where there is no compiler and so no kernel."""
        if self.gpu or not _simt_works():
            return contextlib.nullcontext()
        return simt.run(schedule=schedule, guard=guard, seconds=seconds)

    def launches(self) -> list[channel.Launch]:
        """The kernels launched since this was last called; on a GPU nobody counts them."""
        if self.gpu or not _simt_works():
            return []
        return [channel.Launch(shorten(kernel, 200), grid, block) for kernel, grid, block in simt.take_launches()]

    def synchronise(self) -> None:
        """Wait for the GPU, so that an error of a kernel comes up where it belongs, also one nobody looked at."""
        if self.gpu:
            torch.cuda.synchronize()
            error = channel.last_error()
            if error:
                raise RuntimeError(f"CUDA error: {error}")

    def announce(self, original):
        """load_inline or load that tells the judge when a compiler runs: that time is not the submission's own."""

        signature = inspect.signature(original)

        @functools.wraps(original)
        def announced(*args, **kwargs):
            given = signature.bind(*args, **kwargs).arguments
            name, functions = shorten(str(given["name"]), 200), given.get("functions")
            sources = labelled(cpp_sources=given.get("cpp_sources"), cuda_sources=given.get("cuda_sources"))
            self.reply(channel.Building(name))
            started = time.monotonic()
            try:
                made = original(**self.replaced(given)) if self.instead else original(*args, **kwargs)
                self.extensions.append(str(getattr(made, "__file__", "")))
                return made
            except RuntimeError as error:
                if self.gpu:
                    names = [functions] if isinstance(functions, str) else list(functions or [])
                    explain_torch_build(error, name, sources, names)
                raise
            finally:
                self.reply(channel.Built(name, time.monotonic() - started, sources))

        return announced

    def replaced(self, given: dict) -> dict:
        """load_inline's arguments with the CUDA sources that the judge wants instead."""
        sources = given.get("cuda_sources")
        if not sources:
            return given
        listed = [sources] if isinstance(sources, str) else list(sources)
        return given | {"cuda_sources": [self.instead.get(source, source) for source in listed]}

    @contextlib.contextmanager
    def announced_variant(self, sources: simt.Sources):
        """The same for the build that simt makes of a kernel when it is first checked."""
        name, started = shorten(sources.name, 200), time.monotonic()
        self.reply(channel.Building(name))
        try:
            yield
        finally:
            self.reply(channel.Built(name, time.monotonic() - started, labelled(cpp_sources=sources.cpp, cuda_sources=sources.cuda)))


@functools.cache
def _simt_works() -> bool:
    try:
        simt.warm_up()
    except simt.BuildError:
        return False
    return True


# --- tensors ---------------------------------------------------------------------------------------------------------


def misfits(state: dict, own: dict) -> str:
    """What keeps Model's weights from being loaded, in one sentence; empty if nothing does."""
    missing = [name for name in state if name not in own]
    extra = [name for name in own if name not in state]
    shapes = [n for n in state if n in own and state[n].shape != own[n].shape]
    said = []
    if missing:
        said.append(f"ModelNew has no {', '.join(missing)}")
    if extra:
        said.append(f"Model has no {', '.join(extra)}, which ModelNew has")
    for name in shapes:
        said.append(f"{name} is {tuple(state[name].shape)} in Model and {tuple(own[name].shape)} in ModelNew")
    return shorten("; ".join(said), 2000)


def travels(tensor: torch.Tensor) -> bool:
    """Whether a tensor is plain enough for its elements to be sent."""
    plain = tensor.layout is torch.strided and channel.name_of(tensor.dtype) in channel.DTYPES
    return plain and tensor.device.type == "cpu"


def floating(output: object) -> list[torch.Tensor]:
    """The floating tensors of what forward returned, with the graph that they carry."""
    return [tensor for tensor in ends(output) if tensor.is_floating_point()]


def gradients(outputs: list[torch.Tensor], wanted: list[torch.Tensor], upstream: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """torch.autograd.grad for the outputs that carry a graph."""
    if len(outputs) != len(upstream):
        raise RuntimeError(f"with gradients wanted, forward returned {len(outputs)} floating tensors and not {len(upstream)}")
    pairs = [(out, up) for out, up in zip(outputs, upstream) if out.requires_grad]
    made = torch.autograd.grad([out for out, _ in pairs], wanted, [up for _, up in pairs], allow_unused=True)
    return [None if value is None else value.detach().to_dense() if value.is_sparse else value.detach() for value in made]


def in_pieces(value: torch.Tensor) -> torch.Tensor:
    """The same values so that they do not lie in one piece: with the dimensions in reverse order, or with other numbers between them."""
    reverse = tuple(reversed(range(value.dim())))
    turned = value.permute(reverse).contiguous().permute(reverse)
    if not turned.is_contiguous() or value.dim() == 0:
        return turned
    wide = torch.full((*value.shape, 2), 7.0, dtype=value.dtype, device=value.device)
    wide[..., 0] = value
    return wide[..., 0]


def backward_reason(error: BaseException) -> str:
    """Which of backward's mistakes an exception of torch.autograd.grad is, by torch's words."""
    with contextlib.suppress(Exception):
        if "returned an invalid gradient at index" in str(error):
            return "gradient_shape"
        if "modified by an inplace operation" in str(error):
            return "saved_overwritten"
    return "backward_exception"


def flatten(output: object) -> list[torch.Tensor]:
    """The tensors of what forward returned: itself, or those in a nest of tuples, lists and dicts."""
    return [tensor.detach() for tensor in ends(output)]


def ends(output: object) -> list[torch.Tensor]:
    """The same with the graph that they carry, by the rule that the judge has for Model's; what is no tensor is left to kind_of."""
    found = channel.tensors(output, "cuda" if torch.cuda.is_available() else "cpu")
    return [tensor for tensor in found if isinstance(tensor, torch.Tensor)]


def raw_or_none(value: object, gpu: bool) -> bytes | None:
    """A CPU tensor's elements now; None for other values, and on a GPU, where the judge looks for itself."""
    return channel.raw(value) if isinstance(value, torch.Tensor) and not gpu else None


# --- start -----------------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Serve the judge at the other end of the inherited socket."""
    descriptor, memory, judge = (int(argument) for argument in arguments)
    die_with(judge)
    limit_resources(memory)
    os.set_inheritable(descriptor, False)  # compilers need not hold the connection open
    faulthandler.enable()
    sys.dont_write_bytecode = True
    gpu = torch.cuda.is_available()
    worker = Worker(Channel(socket.socket(fileno=descriptor)), gpu)
    from torch.utils import cpp_extension

    if not gpu:
        _simt_works()  # now, so that a first build on this machine is not taken for the submission's own time
        simt.enable()
        simt.load_inline = worker.announce(simt.load_inline)
        simt.extension.around_variant = worker.announced_variant
        simt.extension.build_ahead = ("check",)  # for the stage "safe": on a second core it is done when that begins
    cpp_extension.load_inline = worker.announce(cpp_extension.load_inline)
    cpp_extension.load = worker.announce(cpp_extension.load)
    worker.serve()


if __name__ == "__main__":
    status = 70
    try:
        main(sys.argv[1:])
    except ChannelError:
        status = channel.LOST  # the judge has hung up, or the submission has closed our socket
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)  # not held up by threads or exit handlers of the submission
