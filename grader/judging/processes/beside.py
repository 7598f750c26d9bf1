"""A grading on the CPU, beside one on a GPU."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from grader.judging.processes.judge import Order
from grader.judging.processes.judges import Judges, Result
from grader.verdict import Verdict

_judges = Judges()
atexit.register(_judges.close)


def prepare() -> None:
    """Start the process that the next grading beside another takes, so that it loads torch meanwhile."""
    _judges.prepare(0)


class Beside:
    """A grading in a process of its own, which is kept for the next one. Whoever starts it closes it.

    tell: is called with the verdict, if there is one, in another thread.
    """

    def __init__(self, order: Order, tell: Callable[[Verdict], None] = lambda verdict: None):
        self._lock = threading.Lock()
        self._kill = None
        self._stopped = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="on the CPU")
        self._judged: Future[Verdict | None] = Future()
        self._ended: Future[Result] = self._pool.submit(self._carry_out, order)
        self._ended.add_done_callback(lambda ended: self._tell(ended.result(), tell))
        self._ended.add_done_callback(lambda _: self._settle(None))

    def wait(self) -> Verdict | str:
        """Return the verdict, which may lack a prediction; or in a sentence why there is none."""
        return self._judged.result() or self.wait_for_end()

    def wait_for_end(self) -> Verdict | str:
        """Return the whole verdict, once it is there; or in a sentence why there is none."""
        result = self._ended.result()
        if result.answer is None:
            return f"The process that grades there {result.died}."
        return result.answer.verdict or result.answer.trouble

    def close(self) -> None:
        """End the grading if it still runs."""
        with self._lock:
            self._stopped = True
            if self._kill:
                self._kill("was stopped")
        self._pool.shutdown()

    def _tell(self, result: Result, tell: Callable[[Verdict], None]) -> None:
        if result.answer and result.answer.verdict and not self._stopped:
            tell(result.answer.verdict)

    def _settle(self, verdict: Verdict | None) -> None:
        """Let wait() return a verdict before the end, or at the end without one."""
        with self._lock:
            if not self._judged.done():
                self._judged.set_result(verdict)

    def _carry_out(self, order: Order) -> Result:
        with _judges.take(0) as judge:
            with self._lock:
                if self._stopped:
                    return Result(None, "was stopped")
                self._kill = judge.kill
            try:
                return judge.carry_out(order, self._settle)
            finally:
                with self._lock:  # from now on the process may be another grading's
                    self._kill = None
