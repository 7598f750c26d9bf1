"""The stage "fast": on a GPU, a correct submission's time next to the reference solution, eager and torch.compile.

Each runs in a process of its own. The submission's processes are stopped but for its own turns, and a canary tells
whether anything else uses the GPU. Inputs are new in each round, and results are read where they lie.
"""

from __future__ import annotations

import contextlib

import torch

from grader.judging import clock, findings
from grader.judging.context import Context
from grader.judging.results import skip_stage
from grader.judging.timing import kept
from grader.judging.timing.bench import Bench, find_bound, make_backward
from grader.judging.timing.clocks import Clocks
from grader.judging.timing.commands import Candidate, NoResult, NotDone, OtherFailed, order
from grader.judging.timing.others import EAGER, list_compared, make_commands, make_probe, share_inputs, start_others
from grader.judging.timing.rounds import Rounds
from grader.judging.timing.watch import Watch
from grader.judging.trial import Finding, FindingError
from grader.verdict import EXPLANATIONS, TIMED, Measurement, Reason, Stage
from grader.worker import protocol
from grader.worker.client import Gone, Late


def run(context: Context, stage: Stage) -> None:
    """Time the submission at full size, on a GPU."""
    if not context.gpu:
        skip_stage(stage, Reason.no_gpu, EXPLANATIONS[Reason.no_gpu])
        return
    trial = context.trials[-1]  # the full size
    context.session.construct(trial, None)
    backward = make_backward(context, trial) if context.requires_gradient else None
    bench = Bench(context, trial, backward)
    try:
        finding = _measure(bench, stage)
    finally:
        _release(bench)
    if finding is not None:
        raise FindingError(finding)


def _release(bench: Bench) -> None:
    """Have the submission's worker drop what it has been given."""
    with contextlib.suppress(Gone, Late):
        if bench.client.process.alive():
            bench.client.process.thaw()
            bench.client.ask(protocol.Release(), bench.seconds)


def _measure(bench: Bench, stage: Stage) -> Finding | None:
    """Time everything and write it into the stage. Return a finding if the submission failed meanwhile."""
    try:
        return _time(bench, stage)
    except OtherFailed as error:
        _end_without_figures(stage, f"The baselines cannot be timed here: {str(error)[:400]}")
        return None
    except (Gone, Late) as error:
        return findings.of_death(error, bench.context.source, "full size", "forward")
    except NoResult as error:
        return Finding(Reason.inconclusive, f"The submission cannot be timed: {error}.", [])
    except NotDone as error:
        if isinstance(error.reply, protocol.Failure):
            sources = bench.client.sources
            return findings.of_failure(error.reply, bench.context.source, sources, "full size", protocol.Batch)
        return Finding(Reason.crash, "The program answered the grader with something that makes no sense.", [])


def _time(bench: Bench, stage: Stage) -> Finding | None:
    """Time everything, or next to eager alone where the others' ratios to it are known; write the figures into the
    stage.
    """
    known = kept.find(bench)
    try:
        timed = _time_in_rounds(bench, stage, known)
    except kept.Drifted:
        bench.report("timing all baselines again: eager takes a different time than when their ratios were measured")
        _release(bench)
        known, timed = None, _time_in_rounds(bench, stage, None)
    if timed is None:
        return None
    result, clocks = timed
    if known:
        result = known.complete(result)
    else:
        kept.keep(bench, result)
    _record(stage, result, clocks)
    if bench.backward:
        stage.message = f"Times of forward and backward together. {stage.message}".strip()
    return Finding(Reason.inconclusive, result.notes[-1], []) if result.below_bound else None


def _time_in_rounds(bench: Bench, stage: Stage, known: kept.Kept | None) -> tuple[clock.Measurement, Clocks] | None:
    """Start what the submission is compared with, and time everything in rounds. None: the stage says why not.

    known: ratios to eager, which is timed alone then. Raises Drifted where they are not to be trusted.
    """
    compared = [EAGER] if known else list_compared(bench.context)
    with contextlib.ExitStack() as stack:
        bench.report("starting the baselines")
        others = start_others(bench, compared, stack)
        inputs = share_inputs(bench, others)
        stack.callback(inputs.release)
        inputs.map(order(bench.client, bench.prepare(inputs), bench.seconds), submission=True)
        process = bench.context.process
        assert process is not None and bench.context.canary is not None
        watch = Watch(bench.context.canary, process)
        mine = Candidate(bench.client, bench.seconds, make_probe(bench.like, stack), watch, inputs)
        baselines, way = make_commands(bench, others, compared, inputs, watch, stack)
        rounds = Rounds(bench, inputs, mine, baselines, way)
        if bench.context.beside is not None and not bench.context.times_beside:
            bench.context.beside.wait_for_end()  # it may still predict a time
        bench.report(f"timing against {', '.join(baselines)}")
        with Clocks() as clocks:
            bound = find_bound(bench, inputs)
            result = clock.measure(
                mine,
                baselines,
                way,
                len(inputs),
                bound_ms=bound,
                refresh=rounds.begin,
                check=rounds.end,
                enough_rounds=bench.context.request.limits.rounds,
            )
        if known:
            known.check(result)
        bench.report("checking what the timed calls computed")
        inputs.release()
        for command in (mine, way, *baselines.values()):  # their memory is needed
            command.probe.release()
            command.client.close()
        try:
            rounds.verify()
        except torch.OutOfMemoryError:
            _end_without_figures(stage, "The GPU has too little memory to compare what a timed call returned.")
            return None
        if watch.is_disturbed():
            _end_without_figures(
                stage,
                f"Something else used the GPU during {watch.disturbed} of {watch.turns} timings of the baselines: the "
                "submission itself after it had returned, or another program. Time again with nothing else on the GPU.",
            )
            return None
        return result, clocks


def _end_without_figures(stage: Stage, message: str) -> None:
    """End the stage without a time: whatever was measured is no figure."""
    stage.reason, stage.message = Reason.inconclusive, message


def _record(stage: Stage, result: clock.Measurement, clocks: Clocks) -> None:
    """Write times and ratios into the stage, with what is uncertain."""
    for timing in (result.candidate, *result.baselines):
        name = TIMED if timing is result.candidate else timing.name
        made = Measurement(
            name=name, value=timing.median_ms, unit="ms", low=timing.q1_ms, high=timing.q3_ms, samples=timing.n
        )
        stage.measurements.append(made)
    for ratio in result.ratios:
        made = Measurement(
            name=f"speed-up over {ratio.baseline}", value=ratio.speedup, unit="x", low=ratio.low, high=ratio.high
        )
        stage.measurements.append(made)
    if summary := clocks.summarize():
        low, median, high = summary["sm_mhz"]
        stage.measurements.append(
            Measurement(name="SM clock", value=median, unit="MHz", low=low, high=high, samples=summary["readings"])
        )
    stage.message = " ".join(result.notes)
    if not result.conclusive:
        stage.reason = Reason.inconclusive
