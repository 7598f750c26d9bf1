"""Start a submission's worker process, with the cache folders that it needs. Loads no torch."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from grader.judging.context import Context, Request
from grader.judging.trial import Progress, Refused
from grader.problems import exercises
from grader.source.contract import Source
from grader.verdict import Stage, StageName
from grader.worker import sandbox

FREE_CORES = 4  # with fewer, the compilers of the two gradings use them all
PREPARING = "preparing what every build needs (once on this machine, about 30 s)"


def start_worker(
    request: Request, source: Source, place: Path, report: Progress, required: bool = False
) -> sandbox.Process:
    """Start a worker for a file; it needs a moment to load torch. place: where it lies. required: only in a sandbox.

    Raises SandboxError, SubmissionChanged, and Refused where a cache folder cannot be made.
    """
    gpu = sandbox.has_gpu() and request.device != "cpu"
    builds = sandbox.extensions(source.sha256, gpu)
    try:
        sandbox.make_folders(builds)
    except OSError as error:
        raise Refused(
            f"The cache folder {error.filename} cannot be made ({error.strerror}): set SIMT_CACHE and XDG_CACHE_HOME "
            "to folders that can be written."
        ) from None
    if not sandbox.why_not():
        (_fill_cache_for_gpu if gpu else _fill_cache)(request, source.text, report)
    return request.start_process(place, source.data, gpu=gpu, builds=builds, required=required)


def start_trusted(context: Context, _: Stage) -> None:
    """Start the worker in which the problem's Model will be timed: it imports torch while a compiler runs."""
    if (os.cpu_count() or 1) >= FREE_CORES:
        context.trusted = sandbox.start_trusted()


def _fill_cache(request: Request, text: str, report: Progress) -> None:
    """Build what simt builds once on a machine, and the exercise's own binding where it is kept as it was handed out,
    for a worker that cannot write to the cache.
    """
    from simt.errors import BuildError
    from simt.toolchain import build

    with contextlib.suppress(BuildError, ValueError):  # the stage "build" reports it
        modes = (*build.USUAL_MODES, *(["count"] if request.predict else []))
        if not build.is_warm(text, modes):
            report(StageName.contract, PREPARING)
            build.warm_up(text, modes)
            report(StageName.contract, "")
        model = request.problem_path or exercises.model_of(request.path, request.folder)
        for given in exercises.read_given_bindings(model):
            if all(part in text for part in (*given.cpp_sources, *given.functions)):
                build.warm_binding(given.cpp_sources, given.functions)


def _fill_cache_for_gpu(_: Request, text: str, report: Progress) -> None:
    """Build what simt builds once on a machine with a GPU, for a worker that cannot write to the cache."""
    from simt.errors import BuildError
    from simt.gpu import build

    with contextlib.suppress(BuildError):  # nvcc compiles it then
        if not build.is_warm(text):
            report(StageName.contract, PREPARING)
            build.warm_up(text)
            report(StageName.contract, "")
