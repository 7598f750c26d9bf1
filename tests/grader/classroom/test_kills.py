"""Does benchmarks/validate/kills.py, which takes hours, read back what it wrote when it was stopped?"""

from collections import Counter

from benchmarks.validate.kills import State


def test_a_stopped_run_goes_on_from_where_it_was(tmp_path):
    state = State({"right": 3}, ["segment"], 12.5, Counter(client=2, worker=1), 1, [0], [5, 6])
    state.keep(tmp_path)
    known = State.read(tmp_path)
    assert known == state and known.done.total() == 3
