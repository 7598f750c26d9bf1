"""Predict the time of a submission that passed on a machine without a GPU, at the problem's full size; of a
NAME_backward the time of forward and backward.

The submission's worker counts (full_size). The judge turns the counters into a time (simt.counting.time_model) and
places it between the steps, the reference and the fastest file, whose counters ship with the course. A prediction is no
measurement and earns no points by itself: the counters are what the worker says.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math

from grader.judging import advice, full_size
from grader.judging.advice import Counted
from grader.judging.context import Context
from grader.judging.full_size import NotPredicted
from grader.judging.trial import Finding, FindingError
from grader.problems import ladders
from grader.problems.cases import ProblemError
from grader.problems.exercises import BACKWARD
from grader.source import contract, waits
from grader.verdict import NOT_IN_TIME, PredictedLaunch, Prediction, Reason, Rung, Stage
from grader.worker import protocol
from simt.counting.time_model import GPUS, Work, find_interval, predict
from simt.counting.what_if import Waste
from simt.devices import DEVICES


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
        stage.message = f"{stage.message} No time is predicted: {_explain(error.finding)}"
    except ProblemError as error:
        stage.message = f"{stage.message} No time is predicted: {_shorten(str(error))}"
    except Exception as error:  # a submission that is right stays so, whatever the grader lacks here
        stage.message = f"{stage.message} No time is predicted: the grader failed ({type(error).__name__})."


def _explain(finding: Finding) -> str:
    """Return why a launch could not be counted."""
    kernel = next((f"`{one.kernel}`" for one in finding.evidence if one.kernel), "a kernel")
    if finding.reason is Reason.kernel_timeout:
        return (
            f"{NOT_IN_TIME}: the few blocks of {kernel} that are counted at full size take longer than "
            f"{full_size.SECONDS:.0f} s on this machine's CPU. Look for work that the threads of a block repeat or "
            "leave to one of them, for barriers in inner loops, and for too few blocks."
        )
    if finding.reason is Reason.timeout:
        return f"{NOT_IN_TIME}: one forward at full size takes too long on this machine's CPU, or never ends."
    return _shorten(finding.message)


def _shorten(text: str) -> str:
    return text if len(text) <= 300 else text[:300] + " …"


def _predict(context: Context, gpu: str) -> Prediction:
    if context.process is None or not context.process.alive():
        raise NotPredicted("an earlier check has ended the submission's process.")
    size = full_size.make_size(context)
    launches = [read_launch(one, gpu) for one in full_size.count(context, size, gpu)]
    total = sum(one.seconds for one in launches)
    if not math.isfinite(total):
        name = next(one.tallied.kernel for one in launches if not math.isfinite(one.seconds))
        raise NotPredicted(f"a block of `{name}` does not fit on the {gpu}.")
    bound, backward = size.moved / GPUS[gpu].dram, context.requires_gradient
    low, high = (sum(one.tallied.times * find_interval(one.prediction)[i] for one in launches) for i in range(2))
    outputs = sum(one.numel() * one.element_size() for one in size.outputs)
    advised = advice.advise(launches, gpu, size.moved, outputs, fusible=not backward)
    slowest = max(launches, key=lambda one: one.seconds)
    sizes = [list(one.shape) for one in size.inputs]
    wait = next(iter(waits.find(context.source.text)), None)
    return Prediction(
        gpu=gpu,
        sizes=sizes,
        ms=_ms(total),
        low=_ms(min(total, max(low, bound))),  # nothing is faster than memory
        high=_ms(high),
        limit=slowest.prediction.limit,
        bound_ms=_ms(bound),
        launches=[_describe(one) for one in launches],
        backward=backward,
        advice=advised.text,
        advice_line=_find_line(context, advised),
        moving=sorted(size.moving),
        waiting=_describe_wait(wait) if wait else "",
        waiting_line=wait.line if wait else None,
        rungs=list_rungs(context.problem.name + BACKWARD * backward, sizes, gpu, _ms(bound)),
    )


def _ms(seconds: float) -> float:
    return float(f"{1e3 * seconds:.4g}")


def _describe_wait(wait: waits.Wait) -> str:
    return (
        f"`{wait.call}` makes the CPU wait for the GPU in each call, which takes time that is not in the prediction. "
        f"{wait.instead}"
    )


def _describe(one: Counted) -> PredictedLaunch:
    tallied = one.tallied
    return PredictedLaunch(
        kernel=tallied.kernel,
        grid=tallied.grid,
        block=tallied.block,
        times=tallied.times,
        ms=_ms(one.seconds),
        limit=one.prediction.limit,
    )


def read_launch(tallied: protocol.TalliedLaunch, gpu: str) -> Counted:
    """Return what the worker says of a launch, with the time that follows from it."""
    fields = {one.name for one in dataclasses.fields(Work)} - {"blocks", "threads", "shared", "mix"}
    blocks, threads = math.prod(tallied.grid), math.prod(tallied.block)
    work = Work(
        blocks=max(1, blocks),
        threads=max(1, threads),
        shared=int(tallied.work.get("shared", 0)),
        mix=dict(tallied.mix),
        **{name: value for name, value in tallied.work.items() if name in fields},
    )
    known = {one.name for one in dataclasses.fields(Waste)}
    waste = Waste(**{name: value for name, value in tallied.waste.items() if name in known})
    return Counted(tallied, work, waste, predict(work, gpu))


def _find_line(context: Context, advised: advice.Advice) -> int | None:
    """Return the line of the student's file that the advice is about."""
    if advised.launch is None or advised.line is None:
        return None
    base = advised.launch.tallied.kernel.split("<")[0].split("::")[-1]
    for strings in context.session.client.sources:
        for text in strings.values():
            if base in text and (line := contract.locate(context.source, text, advised.line)):
                return line
    return None


# ---- the ladder ----


def list_rungs(problem: str, sizes: list[list[int]], gpu: str, bound_ms: float) -> list[Rung]:
    """Return what else is known to solve the problem at these sizes, with predicted and measured times on a GPU.

    bound_ms: what the bytes of inputs and outputs take. A prediction below it is wrong, and left out: of a few blocks
    of a kernel whose blocks share their work out among themselves, less is counted than they do.
    """
    ladder = ladders.read(problem)
    if ladder is None or ladder.sizes != sizes or gpu not in DEVICES:
        return []
    made = []
    for rung in ladder.rungs:
        predicted = sum(one.times * predict(one.make_work(), gpu).seconds for one in rung.launches)
        measured = rung.measured.get(gpu)
        is_predicted = bool(rung.launches) and 1e3 * predicted >= bound_ms
        if is_predicted or measured is not None:
            made.append(
                Rung(
                    name=rung.name,
                    kind=rung.kind,
                    predicted=_ms(predicted) if is_predicted else None,
                    measured=measured,
                    idea=rung.idea,
                )
            )
    return made
