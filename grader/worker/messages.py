"""The messages between judge and worker: values, the judge's commands, the worker's replies.

Every message is a msgspec struct, decoded strictly against this schema and never unpickled. Tensors travel as
(dtype, shape, bytes) on the CPU. On a GPU they stay where they are: the judge allocates them and sends a CUDA IPC
handle, which the worker maps.
"""

# The file stays whole: it is the protocol, which is read as one.

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

MAX_TEXT = 20_000  # characters of one message from the worker
MAX_SOURCE = 200_000  # characters of one source that is reported to the judge, and of all items of a list

# Bounds of what a worker sends. Everything is decoded against them, so the judge's work on a reply is bounded too.
MAX_CUT = 7  # characters that failures.shorten puts where it cuts a text
MAX_NAME = 200 + MAX_CUT  # of a kernel, a type, an extension
MAX_NOTE, MAX_NOTE_LINE = 2000, 500  # of a compiler message, and of the line that it quotes
MAX_NOTES, MAX_FINDINGS = 50, 20
MAX_LEAVES = 1000  # tensors and numbers in what one call returned
MAX_NUMBERED = 10_000  # inputs, parameters and gradients, which messages refer to by their numbers
MAX_RUNS = 64  # calls of forward in one command
MAX_TIMED = 128  # and in one that is timed
MAX_LAUNCHES = 16  # that are reported of one call
MAX_OPERATORS = 64  # of PyTorch that one call used
MAX_TALLIED = 64  # kernels and shapes of launches that are reported of a count
MAX_COUNTERS = 64  # of one launch
MAX_TALLIED_LINES = 8  # of one launch
MAX_LABELS = 64  # sources of one build
MAX_RENAMED = 100  # weights that are reported with both names
MAX_MISSING = 100  # buffers of Model that are reported because ModelNew lacks them
MAX_DIMS = 64  # of a tensor
MAX_LINE = 2**31 - 1  # as Python's own line numbers
MAX_INT = 2**63 - 1
HANDLE_BYTES = 64  # of a CUDA IPC handle

Name = Annotated[str, Meta(max_length=MAX_NAME)]
Text = Annotated[str, Meta(max_length=MAX_TEXT + MAX_CUT)]
SourceText = Annotated[str, Meta(max_length=MAX_SOURCE)]
Line = Annotated[int, Meta(ge=0, le=MAX_LINE)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT)]
Amount = Annotated[float, Meta(ge=0, le=1e30)]  # a sum of counters, finite
Shape = Annotated[list[Count], Meta(max_length=MAX_DIMS)]
Position = Annotated[list[Count], Meta(min_length=3, max_length=3)]  # of a block or a thread: x, y, z
Numbers = Annotated[list[Count], Meta(max_length=MAX_NUMBERED)]  # of inputs or parameters

# --- values ----------------------------------------------------------------------------------------------------------


class Array(msgspec.Struct, tag="array", forbid_unknown_fields=True):
    """A CPU tensor: dtype by name, shape, the memory that it covers. strides: in elements; None for row-major order."""

    dtype: str
    shape: list[int]
    data: bytes
    strides: list[int] | None = None


class Handle(msgspec.Struct, tag="handle", forbid_unknown_fields=True):
    """A tensor in GPU memory that the judge owns: 64 bytes of CUDA IPC handle. strides: as an Array's."""

    dtype: str
    shape: list[int]
    handle: bytes
    strides: list[int] | None = None


class Lent(msgspec.Struct, tag="lent", forbid_unknown_fields=True):
    """A tensor in CPU memory of the judge, which the worker can only read. offset: in simt.runtime.monitor's inputs.

    strides: as an Array's.
    """

    dtype: str
    shape: list[int]
    offset: int
    strides: list[int] | None = None


class Room(msgspec.Struct, tag="room", forbid_unknown_fields=True):
    """A tensor that the worker allocates itself, for the judge to write into. strides: as an Array's."""

    dtype: str
    shape: list[int]
    strides: list[int] | None = None


class Items(msgspec.Struct, tag="items", forbid_unknown_fields=True):
    """A list or a tuple; a dict is kind "dict" with keys and values alternating."""

    kind: str
    values: list[Value]


class Named(msgspec.Struct, tag="named", forbid_unknown_fields=True):
    """A torch.dtype or torch.device by its name, e.g. ("dtype", "float32")."""

    kind: str
    name: str


Value = None | bool | int | float | str | Array | Handle | Lent | Room | Items | Named


# --- commands, judge to worker ---------------------------------------------------------------------------------------


class Build(msgspec.Struct, tag="build", forbid_unknown_fields=True):
    """Import the submission. seconds: after this time the worker dumps its stack, to show where it hangs.

    instead: CUDA sources that replace the submission's own when it calls load_inline (see grader.diagnosis.mutants).
    files: C++ and CUDA files next to the submission, by their paths from its folder. modules: those that an import
    builds, with their sources (see grader.source.companions).
    """

    source: str
    path: str
    seconds: float
    instead: dict[str, str] = {}
    files: dict[str, str] = {}
    modules: dict[str, list[str]] = {}


class Construct(msgspec.Struct, tag="construct", forbid_unknown_fields=True):
    """Construct ModelNew(*args, **kwargs) and load the weights. model_source: for ModelNew.load_reference.

    buffers: names in `state` that need no counterpart in ModelNew. weight_seed: the constructor begins with this seed,
    as Model's did, and draws what is not in `state`. gpu: the GPU whose figures the constructor reads, None for the
    one whose limits launches have.
    """

    args: Value
    kwargs: Value
    state: dict[str, Value]
    model_source: str
    model_path: str
    overrides: Value
    guard: str | None
    seconds: float
    buffers: list[str] = []
    weight_seed: int | None = None
    gpu: str | None = None


class Forward(msgspec.Struct, tag="forward", forbid_unknown_fields=True):
    """Run forward once for each list in `batches`, all results kept until the last is done.

    outputs: for each batch the judge's buffers to copy the results into (GPU), else empty: results are sent as bytes,
    at most max_bytes of them. kernel_seconds: limit for one kernel; seconds: for the whole command.
    check: run with all of simt's checks on and send their findings; a fault is then one of the findings.
    mutant: which edit of the CUDA sources is active, of those that Build.instead contains. watch: report PyTorch's
    operators on tensors of at least so many elements; 0: none. Whether kernels run no thread, the judge tells simt's
    runtime alone.
    """

    batches: list[list[Value]]
    outputs: list[list[Handle]]
    schedule: str | int
    guard: str | None
    kernel_seconds: float
    seconds: float
    max_bytes: int
    check: bool = False
    mutant: int = 0
    watch: Count = 0


class Gradient(msgspec.Struct, tag="gradient", forbid_unknown_fields=True):
    """Run forward and its backward once and return the gradients of these inputs and parameters.

    differentiable: indices of inputs; parameters: names of weights. upstream: the gradient of each floating output.
    strided: pass it as a non-contiguous tensor. other: inputs of a second call of forward, made between the first call
    and its backward; empty for none. outputs: the judge's buffers for the gradients (GPU), else empty. check, mutant:
    as in Forward. watch: as in Forward, of backward. pause: reply Recorded once forward has run; backward and its
    upstream gradient are the next command.
    """

    inputs: list[Value]
    differentiable: list[int]
    parameters: list[str]
    upstream: list[Value]
    strided: bool
    other: list[Value]
    outputs: list[Handle]
    schedule: str | int
    guard: str | None
    kernel_seconds: float
    seconds: float
    max_bytes: int
    check: bool = False
    mutant: int = 0
    watch: Count = 0
    pause: bool = False


class Backward(msgspec.Struct, tag="backward", forbid_unknown_fields=True):
    """Run the backward of a Gradient command with `pause`, whose other fields hold for this command too."""

    upstream: list[Value]
    seconds: float


class Prepare(msgspec.Struct, tag="prepare", forbid_unknown_fields=True):
    """Keep these inputs for later Batch commands, which refer to them by index, and say where they lie. Answered by
    Prepared.

    upstream: for each of them the gradient of each floating output, if Batch runs backward too; differentiable,
    parameters: the inputs and weights whose gradients it computes.
    """

    batches: list[list[Value]]
    upstream: list[list[Value]] = []
    differentiable: list[int] = []
    parameters: list[str] = []


class Batch(msgspec.Struct, tag="batch", forbid_unknown_fields=True):
    """Run forward (and backward) on the prepared inputs with these indices, keep the results, wait for the device, and
    say where they lie. Answered by Timed.

    model: the attribute of the constructed model to call instead of the model itself, of a worker that has several.
    calls: how many of the indices it is run for, all if 0; the others' results have room and are not computed. The
    command has no `seconds`: to arm and disarm the worker's own watchdog takes a part of a millisecond.
    """

    indices: list[int]
    model: str = ""
    calls: int = 0


class Ahead(msgspec.Struct, tag="ahead", forbid_unknown_fields=True):
    """Begin to build the kernels for counting, in a thread of their own, and reply at once."""


class Tally(msgspec.Struct, tag="tally", forbid_unknown_fields=True):
    """Run one call on the first prepared inputs with counters, of each launch this many blocks alone, so that a full
    size takes no longer than a small one. Answered by Tallied.

    gpu: a name of simt.devices.DEVICES, whose limits hold. kernel_seconds, seconds: as in Forward.
    """

    blocks: int
    gpu: str
    kernel_seconds: float
    seconds: float


class Clear(msgspec.Struct, tag="clear", forbid_unknown_fields=True):
    """Overwrite the results of the last Batch with zeros, so that no other process finds them, and drop them."""


class Release(msgspec.Struct, tag="release", forbid_unknown_fields=True):
    """Unmap the judge's memory and drop everything that refers to it."""


Command = Build | Construct | Forward | Gradient | Backward | Prepare | Batch | Ahead | Tally | Clear | Release


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """A command and its number, which every answer to it repeats."""

    number: int
    command: Command


# --- answers, worker to judge ----------------------------------------------------------------------------------------


class Ready(msgspec.Struct, tag="ready", forbid_unknown_fields=True):
    """The worker has started. versions: e.g. torch."""

    versions: Annotated[dict[Name, Name], Meta(max_length=MAX_LABELS)]


class Building(msgspec.Struct, tag="building", forbid_unknown_fields=True):
    """A compiler has started for the extension of this name."""

    name: Name


class Built(msgspec.Struct, tag="built", forbid_unknown_fields=True):
    """The compiler has ended. sources: the student's strings, e.g. {"cuda_sources": "...", "cuda_sources[0]": "..."}:
    one string, and where a list was given each item as well. failure: why there is no extension.
    """

    name: Name
    seconds: float
    sources: Annotated[dict[Name, SourceText], Meta(max_length=MAX_LABELS)]
    failure: Failure | None = None


class Done(msgspec.Struct, tag="done", forbid_unknown_fields=True):
    """The command was carried out."""


class Constructed(msgspec.Struct, tag="constructed", forbid_unknown_fields=True):
    """ModelNew was constructed and has its weights. renamed: pairs (name in Model, name in ModelNew) that differ, the
    first MAX_RENAMED of them. missing: the first MAX_MISSING of Model's buffers that ModelNew lacks.
    """

    renamed: Annotated[list[tuple[Name, Name]], Meta(max_length=MAX_RENAMED)] = []
    missing: Annotated[list[Name], Meta(max_length=MAX_MISSING)] = []


class Result(msgspec.Struct, forbid_unknown_fields=True):
    """One returned tensor, unconverted; data is None if it stays on the GPU or is too large."""

    dtype: Name
    shape: Shape
    device: Name
    data: bytes | None


class Launch(msgspec.Struct, forbid_unknown_fields=True):
    """A kernel's launch; grid and block as (x, y, z)."""

    kernel: Name
    grid: tuple[Count, Count, Count]
    block: tuple[Count, Count, Count]


class Operator(msgspec.Struct, forbid_unknown_fields=True):
    """An operator of PyTorch as torch.ops.aten names it, and the submission's line that called it first, if known."""

    name: Name
    line: Line | None


Operators = Annotated[list[Operator], Meta(max_length=MAX_OPERATORS)]
Launches = Annotated[list[Launch], Meta(max_length=MAX_LAUNCHES)]


class Written(msgspec.Struct, forbid_unknown_fields=True):
    """The line of a kernel's first write to an input. offset: as in Lent; line: in the student's own string."""

    offset: Count
    source: Name
    line: Line


AllWritten = Annotated[list[Written], Meta(max_length=MAX_NUMBERED)]


class Run(msgspec.Struct, forbid_unknown_fields=True):
    """One call of forward. kind: what it returned; modified, aliases: indices of inputs; reuses: whether its output
    shares memory with an earlier one. modified: of inputs that are not lent; the judge itself sees writes to those that
    are. written: the lines of these writes.

    launches: on a CPU the kernels of this call, oldest first; of many only the last ones. operators: of PyTorch that
    computed with large tensors.
    """

    kind: Name
    results: Annotated[list[Result], Meta(max_length=MAX_LEAVES)]
    modified: Numbers
    aliases: Numbers
    reuses: bool
    launches: Launches = []
    operators: Operators = []
    written: AllWritten = []


class Found(msgspec.Struct, forbid_unknown_fields=True):
    """One error that simt's checks found in a kernel. check: e.g. "race"; line: in the student's own string."""

    check: Name
    message: Text
    kernel: Name
    source: Name
    line: Line
    block: Position | None
    thread: Position | None


AllFound = Annotated[list[Found], Meta(max_length=MAX_FINDINGS)]


class Outputs(msgspec.Struct, tag="outputs", forbid_unknown_fields=True):
    """What the calls of a Forward command returned, in order. found: the finding to fix first comes first. A fault
    ends the runs early.
    """

    runs: Annotated[list[Run], Meta(max_length=MAX_RUNS)]
    found: AllFound = []


class Recorded(msgspec.Struct, tag="recorded", forbid_unknown_fields=True):
    """forward has run. graph: whether its output carries a gradient; found: as in Outputs."""

    graph: bool
    found: AllFound = []


class Gradients(msgspec.Struct, tag="gradients", forbid_unknown_fields=True):
    """What a Gradient command returned. graph: whether forward's output carries a gradient at all; without one the
    other fields are empty.

    results: a gradient for each requested input, then for each requested parameter; None where there is none. unknown:
    indices in that list of parameters that ModelNew does not have. modified: the tensors that backward wrote to, as
    indices into the requested inputs, the parameters, the upstream gradients and forward's outputs together. found: as
    in Outputs. launches, operators: of backward, as in Run.
    """

    graph: bool
    results: Annotated[list[Result | None], Meta(max_length=MAX_NUMBERED)] = []
    unknown: Numbers = []
    modified: Numbers = []
    found: AllFound = []
    launches: Launches = []
    operators: Operators = []


class Location(msgspec.Struct, forbid_unknown_fields=True):
    """Where a tensor lies in the worker's GPU memory: a CUDA IPC handle of its allocation and an offset in bytes."""

    dtype: Name
    shape: Shape
    strides: Shape
    handle: Annotated[bytes, Meta(min_length=HANDLE_BYTES, max_length=HANDLE_BYTES)]
    offset: Count


Located = Annotated[list[Location | None], Meta(max_length=MAX_LEAVES)]


class Prepared(msgspec.Struct, tag="prepared", forbid_unknown_fields=True):
    """Where the values of a Prepare command lie, in its order; None for one that is in no memory of the GPU that can be
    shared. Empty on a CPU.
    """

    batches: Annotated[list[Located], Meta(max_length=MAX_TIMED)] = []
    upstream: Annotated[list[Located], Meta(max_length=MAX_TIMED)] = []


class Timed(msgspec.Struct, tag="timed", forbid_unknown_fields=True):
    """A Batch was carried out.

    results: for each call where its tensors lie, the outputs before the gradients; None for one that is in no memory of
    the GPU that can be shared. Empty on a CPU. gpu_seconds: from the first call's begin to the last one's end by CUDA
    events; 0 on a CPU. It is heeded only where the worker is trusted.
    """

    results: Annotated[list[Located], Meta(max_length=MAX_TIMED)] = []
    gpu_seconds: Annotated[float, Meta(ge=0)] = 0.0


class TalliedLine(msgspec.Struct, forbid_unknown_fields=True):
    """A source line of a kernel that needs more than its accesses' bytes do: sectors of global memory or wavefronts of
    shared memory per request, and how many would be enough. kind: one of simt.counting.counters.TRAFFICS.
    """

    line: Line
    kind: Name
    requests: Amount
    have: Amount
    ideal: Amount


class TalliedLaunch(msgspec.Struct, forbid_unknown_fields=True):
    """Launches of one kernel with one shape. times: how many; work, waste: of one of them, the fields of
    simt.counting.time_model.Work and simt.counting.what_if.Waste by name; mix: operations by kind, as in Work.
    """

    kernel: Name
    grid: Position
    block: Position
    times: Annotated[int, Meta(ge=1, le=MAX_INT)]
    work: Annotated[dict[Name, Amount], Meta(max_length=MAX_COUNTERS)]
    mix: Annotated[dict[Name, Amount], Meta(max_length=MAX_COUNTERS)]
    waste: Annotated[dict[Name, Amount], Meta(max_length=MAX_COUNTERS)]
    lines: Annotated[list[TalliedLine], Meta(max_length=MAX_TALLIED_LINES)] = []


class Tallied(msgspec.Struct, tag="tallied", forbid_unknown_fields=True):
    """What a Tally command counted. left_out: launches of further kernels and shapes, for which there was no room."""

    launches: Annotated[list[TalliedLaunch], Meta(max_length=MAX_TALLIED)]
    left_out: Count = 0


class Note(msgspec.Struct, forbid_unknown_fields=True):
    """One compiler message: source e.g. "cuda_sources", line from 1 in the student's own string."""

    source: Name
    line: Line | None
    severity: Name
    message: Annotated[str, Meta(max_length=MAX_NOTE + MAX_CUT)]
    text: Annotated[str, Meta(max_length=MAX_NOTE_LINE + MAX_CUT)]


class Failure(msgspec.Struct, tag="failure", forbid_unknown_fields=True, omit_defaults=True):
    """The submission raised. reason: one of claims.accepted_reasons(); kind: the exception's type; line: of the
    submission's file.
    """

    reason: Name
    kind: Name
    message: Text
    line: Line | None = None
    notes: Annotated[list[Note], Meta(max_length=MAX_NOTES)] = []
    kernel: Name | None = None
    source: Name | None = None
    source_line: Line | None = None
    block: Position | None = None
    thread: Position | None = None
    broken: bool = False  # the process is of no further use (a sticky CUDA error)


Reply = (
    Ready
    | Building
    | Built
    | Done
    | Constructed
    | Outputs
    | Recorded
    | Gradients
    | Prepared
    | Timed
    | Tallied
    | Failure
)


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """A reply with the number of the order it answers (0 for Ready)."""

    number: int
    reply: Reply
