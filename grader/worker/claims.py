"""Which reasons for a failure a worker may give: the judge accepts these for each command and no others.

Whatever raises in the worker is the submission's own code, so a reason is a claim. All of these end as a failed stage.
A reason that would end as anything else (interrupted, grader_error, not_attempted, …) is the judge's own to give.
"""

from __future__ import annotations

from grader.worker import messages

BUILD_REASONS = frozenset(
    ("compile_error", "undeclared_function", "missing_cpp_sources", "link_error", "unsupported_cuda")
)
KERNEL_REASONS = frozenset(
    (
        *("launch_error", "out_of_bounds", "illegal_address", "misaligned", "division_by_zero", "stack_overflow"),
        *("barrier_divergence", "warp_divergence", "kernel_timeout", "device_assert"),
    )
)
# Faults of the machine, which the judge accepts only after it has looked for itself.
MACHINE_REASONS = frozenset(("no_compiler", "grader_error"))

# Kernels are built and launched wherever the submission's code runs.
_ANYWHERE = BUILD_REASONS | KERNEL_REASONS | {"out_of_memory"}
_GENERIC: dict[type[messages.Command], str] = {messages.Build: "import_error", messages.Construct: "init_error"}
_MORE: dict[type[messages.Command], frozenset[str]] = {
    messages.Build: frozenset(("no_model_new",)),
    messages.Construct: frozenset(("missing_weights",)),
    messages.Gradient: frozenset(("backward_exception", "gradient_shape", "saved_overwritten")),
    messages.Backward: frozenset(("backward_exception", "gradient_shape", "saved_overwritten")),
}

# A name of simt's checks -> the reason that it stands for.
CHECK_REASONS = {
    **{reason: reason for reason in KERNEL_REASONS},
    **{check: check for check in ("int_overflow", "race", "uninitialized", "leak")},
    "unchecked_error": "launch_error",
    "schedule": "launch_error",
}

# The replies that end a command, besides Failure.
REPLIES: dict[type[messages.Command], tuple[type[messages.Reply], ...]] = {
    messages.Construct: (messages.Constructed,),
    messages.Forward: (messages.Outputs,),
    messages.Gradient: (messages.Gradients, messages.Recorded),
    messages.Backward: (messages.Gradients,),
    messages.Prepare: (messages.Prepared,),
    messages.Batch: (messages.Timed,),
    messages.Tally: (messages.Tallied,),
}


def generic_reason(command: type[messages.Command]) -> str:
    """Return the reason of an exception that says no more than that the command raised one."""
    return _GENERIC.get(command, "exception")


def accepted_reasons(command: type[messages.Command]) -> frozenset[str]:
    """Return the reasons that the judge accepts from a worker for this command."""
    return _ANYWHERE | _MORE.get(command, frozenset()) | {generic_reason(command)}


def accept_reason(claimed: str, command: type[messages.Command]) -> str:
    """Return the claimed reason where a worker may give it for this command, else the generic one."""
    return claimed if claimed in accepted_reasons(command) else generic_reason(command)


def is_reply_to(reply: messages.Reply, command: messages.Command) -> bool:
    """Return whether a reply can end this command."""
    return isinstance(reply, (messages.Failure, *REPLIES.get(type(command), (messages.Done,))))
