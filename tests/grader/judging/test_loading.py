"""What is loaded when, and is it left alone by the garbage collector from then on?"""

import gc
import subprocess
import sys

import pytest

from grader.judging.loading import uncollected

BEFORE_TORCH = ["grader.cli.main", "grader.judging.grading", "grader.judging.both", "grader.judging.stages.contract"]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_what_is_loaded_is_never_looked_at_again(is_enabled):
    was_enabled = gc.isenabled()
    gc.enable() if is_enabled else gc.disable()
    try:
        with uncollected():
            assert not gc.isenabled()
            made = [[] for _ in range(1000)]
        assert gc.isenabled() == is_enabled
        assert gc.get_freeze_count() >= 1000
        assert not any(each is made for each in gc.get_objects())  # it is frozen
        later = [[]]
        assert any(each is later for each in gc.get_objects())
    finally:
        gc.unfreeze()
        gc.enable() if was_enabled else gc.disable()


@pytest.mark.parametrize("name", BEFORE_TORCH)
def test_torch_is_not_loaded_before_the_worker_starts(name):
    """Does what runs before a worker starts leave torch to the time in which the worker loads its own?"""
    code = f"import sys, {name}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
