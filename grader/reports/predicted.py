"""The parts of a report about a predicted time: how much, how sure, beside what else, and what to try next."""

from __future__ import annotations

from collections.abc import Callable

from grader.reports.parts import Table, Words
from grader.verdict import Outcome, Prediction, Rung, Stage, Verdict

HERE = "→ this submission"
NAMES = {"reference": "reference solution", "fastest": "fastest file", "compile": "torch.compile", "eager": "eager"}
HEAD = ("", "predicted", "measured", "")
NEAR_BOUND = 1.35  # times what the bytes of inputs and outputs take, up to which little is left to gain
CLEARLY = 1.1  # times as fast: less is within what a prediction does not tell apart
LITTLE_LEFT = "That is little more than to read the inputs and write the outputs once."
NOTHING = "The counters show no waste that stands out."
Where = Callable[[int], str]


def find(verdict: Verdict) -> tuple[Stage, Prediction] | None:
    """Return the stage with its prediction, if the verdict has one and passed."""
    if verdict.outcome is not Outcome.passed:
        return None
    found = [(stage, stage.prediction) for stage in verdict.stages if stage.prediction is not None]
    return found[0] if found else None


def tell(verdict: Verdict, where: Where) -> list[object]:
    """Return the parts; none where no time is predicted. where: names a line of the student's file."""
    found = find(verdict)
    if found is None:
        return []
    prediction, time = found[1], found[0].find_time()
    measured = time.value if time else None
    parts: list[object] = [Words(describe(prediction, measured), "lead")]
    parts += [Words(describe_interval(prediction, measured), "soft")]
    rows = list_rows(prediction, measured)
    if len(rows) > 1:
        parts.append(Table(rows, head=HEAD, numbers=(1, 2, 3)))
    parts.append(Words(f"{describe_launches(prediction)} {describe_advice(prediction, where)}"))
    parts += [Words(describe_waiting(prediction, where))] if prediction.waiting else []
    parts += [Words(describe_moving(prediction))] if prediction.moving else []
    parts += [Words(text) for text in describe_faster(prediction)]
    return parts


def describe(prediction: Prediction, measured: float | None = None) -> str:
    """Return the time, the GPU and the size. measured: the measured time in milliseconds, where there is one."""
    sizes = " and ".join("×".join(f"{n:,}" for n in shape) or "one number" for shape in prediction.sizes)
    what = "forward and backward" if prediction.backward else "one forward"
    times = show_time(prediction.ms) + (f", measured: {show_time(measured)}," if measured is not None else "")
    return f"Predicted on the {prediction.gpu}: {times} for {what} with inputs of {sizes}"


def describe_interval(prediction: Prediction, measured: float | None = None) -> str:
    """Return how sure the time is, and that it is no measurement; or how the measured time compares with it."""
    if measured is not None:
        words = f"Nine in ten kernels of this kind take {show_time(prediction.low)} to {show_time(prediction.high)}."
        if measured > prediction.high:
            return f"{words} This one takes longer than its counters explain: look for gaps between its launches."
        return f"{words} This one is faster than its counters explain." if measured < prediction.low else words
    return (
        f"Predicted from counters, not measured: nine in ten kernels of this kind take {show_time(prediction.low)} to "
        f"{show_time(prediction.high)}. To read the inputs and write the outputs alone takes "
        f"{show_time(prediction.bound_ms)}."
    )


def describe_launches(prediction: Prediction) -> str:
    """Return what limits the launches that take longest."""
    slowest = max(prediction.launches, key=lambda one: one.ms)
    count = sum(one.times for one in prediction.launches)
    if count == 1:
        return f"It is limited by {prediction.limit}."
    share = slowest.ms / prediction.ms if prediction.ms else 0.0
    times = f"{slowest.times:,} times " if slowest.times > 1 else ""
    return f"{times}`{slowest.kernel}` takes {share:.0%} of it, limited by {slowest.limit}.".strip()


def describe_advice(prediction: Prediction, where: Where) -> str:
    """Return what to try next, with its line; or that nothing stands out."""
    if not prediction.advice:
        return LITTLE_LEFT if prediction.ms < NEAR_BOUND * prediction.bound_ms else NOTHING
    if prediction.advice_line is None:
        return f"What to try next: {prediction.advice[:1].lower()}{prediction.advice[1:]}"
    return f"Look at {where(prediction.advice_line)} next. {prediction.advice}"


def describe_waiting(prediction: Prediction, where: Where) -> str:
    """Return with which call the CPU waits for the GPU, and what to do instead."""
    place = "A call of" if prediction.waiting_line is None else f"In {where(prediction.waiting_line)},"
    return f"{place} {prediction.waiting}"


def describe_moving(prediction: Prediction) -> str:
    """Return what the time leaves out: PyTorch's own operators that move data; and how to do without a fill."""
    names = " and ".join(f"`{name}`" for name in prediction.moving)
    words = f"Not in this time: what PyTorch's own {names} takes."
    if {"fill_", "zero_"} & {*prediction.moving}:
        words += " A tensor of which your kernel writes every element needs no zeros: use `torch::empty_like`."
    if "copy_" in prediction.moving:
        words += " Remove a copy that your kernel does not need: it can read its input where it lies."
    return words


# ---- the ladder ----


def choose_rungs(prediction: Prediction) -> list[Rung]:
    """Return the rungs that are shown: of the steps the first, the next that is clearly faster and the fastest; and all
    that are no steps.
    """
    steps = [rung for rung in prediction.rungs if rung.kind == "step"]
    faster = sorted((rung for rung in steps if is_faster(rung, prediction)), key=time_of)
    shown = [*steps[:1], *faster[-1:], *sorted(steps, key=time_of)[:1]]
    return [rung for rung in prediction.rungs if rung.kind != "step" or rung in shown]


def describe_faster(prediction: Prediction) -> list[str]:
    """Return the optional target, the next step's time, and the last step, each with what is new in it."""
    faster = [rung for rung in choose_rungs(prediction) if rung.idea and is_faster(rung, prediction)]
    lines = [f"Step {rung.name} takes {show_time(time_of(rung))}: {rung.idea}." for rung in faster[1:]]
    target = [f"Optional target: {show_time(time_of(one))}, as step {one.name}: {one.idea}." for one in faster[:1]]
    return target + lines


def is_faster(rung: Rung, prediction: Prediction) -> bool:
    """Return whether a rung is so much faster than the submission that there is something to learn from it."""
    return time_of(rung) * CLEARLY < prediction.ms


def time_of(rung: Rung) -> float:
    """Return a rung's predicted time in ms, or the measured one where it is not predicted."""
    time = rung.predicted if rung.predicted is not None else rung.measured
    return time if time is not None else 0.0


def list_rows(prediction: Prediction, measured: float | None = None) -> list[tuple[str, ...]]:
    """Return a row for the submission and for each rung, the slowest first: name, times, and the factor between; last
    those that were measured alone. measured: the submission's milliseconds, where they were.
    """
    mine = (HERE, show_time(prediction.ms), "" if measured is None else show_time(measured), "")
    rows: list[tuple[float, tuple[str, ...]]] = [(prediction.ms, mine)]
    only_measured = []
    for rung in choose_rungs(prediction):
        cells = [show_time(value) if value is not None else "" for value in (rung.predicted, rung.measured)]
        if rung.predicted is None:  # a measured time says nothing about a predicted one's place
            only_measured.append((_name(rung), *cells, ""))
        else:
            rows.append((rung.predicted, (_name(rung), *cells, _compare(prediction.ms, rung.predicted))))
    return [row for _, row in sorted(rows, key=lambda one: -one[0])] + only_measured


def _name(rung: Rung) -> str:
    return f"step {rung.name}" if rung.kind == "step" else NAMES.get(rung.kind, rung.name)


def _compare(mine: float, other: float) -> str:
    """Return how many times as fast as the submission something is."""
    if not mine or not other:
        return ""
    times = mine / other
    return f"{times:.2f} times as fast" if times < 9.95 else f"{times:,.0f} times as fast"


def show_time(ms: float) -> str:
    """Return milliseconds with three digits and a suitable unit."""
    if ms < 1e-4:
        return "less than 0.1 µs"
    return f"{1e3 * ms:.3g} µs" if ms < 0.9995 else f"{ms:,.3g} ms" if ms < 999.5 else f"{ms:,.0f} ms"
