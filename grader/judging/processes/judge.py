"""A process that grades one file after another, and loads torch once. It ends when the one that started it does.

Run as a program it is that process: it reads orders from standard input, a line of JSON each, and answers each with a
line on the descriptor that its argument names.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from grader.judging.observer import NoObserver
from grader.verdict import Verdict
from grader.worker.spare import Spare
from simt.toolchain.removal import remove_tree

NAME = "GRADER_CLASS_JUDGE"  # a variable that is set in the process, for those who look for it


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """One file to grade. name: of the file, which names its exercise. data: what is in it, unless path says where it
    lies.

    model: the problem's file; if model_data holds what is in it, the file itself need not be on this machine. gpu: a
    name of simt.devices.DEVICES, whose limits a launch has on the CPU; what $SIMT_DEVICE says if None. predict: such a
    name, of the GPU whose time is predicted; None: no time is. The other fields are those of grading.grade().
    """

    name: str
    data: bytes
    model: str | None
    settings: dict[str, str]
    seed: int
    device: str | None
    require_sandbox: bool
    seconds: float
    model_data: bytes | None = None
    path: str = ""
    folder: str | None = None
    case: str | None = None
    gpu: str | None = None
    predict: str | None = None
    keep_ready: bool = False


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """The verdict on a file; or, in a sentence, why the machine or the course cannot grade it.

    is_last: False for a verdict that lacks the prediction, which follows.
    """

    verdict: Verdict | None = None
    trouble: str = ""
    is_last: bool = True


class _Early(NoObserver):
    """Answers before a time is predicted."""

    def __init__(self, answer: Callable[[Answer], None]):
        self.answer = answer

    def judged(self, verdict: Verdict) -> None:
        if not _was_killed(verdict):
            self.answer(Answer(verdict, is_last=False))


def serve(descriptor: int) -> None:
    """Answer orders until standard input ends; then end at once, and all workers with this process.

    The current folder is this process's own.
    """
    orders = sys.stdin.buffer
    lines: list[bytes] = []
    arrived = threading.Semaphore(0)

    def read() -> None:
        for line in orders:
            lines.append(line)
            arrived.release()
        remove_tree(Path.cwd())
        os._exit(0)  # the supervisors of its workers see its end

    threading.Thread(target=read, daemon=True).start()
    _load()
    spare = Spare()
    with open(descriptor, "wb", buffering=0) as answers:

        def write(answer: Answer) -> None:
            answers.write(msgspec.json.encode(answer) + b"\n")

        while True:
            arrived.acquire()
            order = msgspec.json.decode(lines.pop(0), type=Order)
            write(_carry_out(order, spare, _Early(write)))
            if order.keep_ready:
                spare.prepare()


def _load() -> None:
    """Load what every grading needs."""
    import grader.judging.grading
    import grader.judging.session
    import grader.judging.stages.correct
    import grader.problems.problem  # noqa: F401


def _carry_out(order: Order, spare: Spare, early: _Early) -> Answer:
    """Grade one file: where it lies, or in the current folder. spare: used for a file that is graded repeatedly."""
    from grader.judging.grading import Limits, Refused, grade
    from grader.problems.problem import ProblemError

    path, folder = Path(order.path), order.folder and Path(order.folder)
    if not order.path:
        path, folder = Path(order.name), Path.cwd()
        path.write_bytes(order.data)
    if order.gpu:
        os.environ["SIMT_DEVICE"] = order.gpu
    try:
        for _ in range(2):
            verdict = grade(
                path,
                problem=_find_model(order),
                overrides=order.settings,
                device=order.device,
                seed=order.seed,
                limits=Limits(own=order.seconds),
                require_sandbox=order.require_sandbox,
                case=order.case,
                folder=folder or None,
                predict=order.predict,
                worker=spare.start if order.keep_ready else None,
                observer=early,
            )
            if not _was_killed(verdict):
                break
        verdict.settings = order.settings
        return Answer(verdict)
    except (Refused, ProblemError) as error:
        return Answer(trouble=str(error))
    except Exception as error:
        return Answer(trouble=f"The grader failed ({type(error).__name__}: {str(error)[:500]}).")
    finally:
        if not order.path:
            path.unlink(missing_ok=True)


def _was_killed(verdict: Verdict) -> bool:
    """Return whether something else, such as a machine short of memory, may have ended the submission's process."""
    from grader.worker.client import KILLED

    return any(KILLED in stage.message for stage in verdict.stages)


def _find_model(order: Order) -> Path | None:
    """Return the problem's file; write it into the current folder if it came with the order."""
    if order.model is None:
        return None
    path = Path(order.model)
    if order.model_data is None:
        return path
    folder = Path.cwd() / "problem"
    folder.mkdir(mode=0o700, exist_ok=True)  # a submission must not read it
    path = folder / path.parent.name / path.name  # a model.py has the name of its folder
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(order.model_data)
    return path


if __name__ == "__main__":
    serve(int(sys.argv[1]))
