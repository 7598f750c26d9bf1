"""Does work that is spread over threads get done where no thread can be started?"""

import threading

import pytest

from simt.toolchain.threads import map_on_threads


@pytest.mark.parametrize("allowed", [0, 1, 9])
def test_map_on_threads(monkeypatch, allowed):
    """Are all results there, in their order, with no thread, with one, and with as many as are wanted?"""
    start, started = threading.Thread.start, []

    def start_few(thread):
        if len(started) >= allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_few)
    assert map_on_threads(lambda n: n * n, range(20), 3) == [n * n for n in range(20)]
    assert len(started) <= min(allowed, 3)


def test_an_error_is_raised():
    """Does the error of an item reach the caller?"""
    with pytest.raises(ZeroDivisionError):
        map_on_threads(lambda n: 1 // n, [2, 1, 0])
