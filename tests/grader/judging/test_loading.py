"""Is what was loaded left alone by the garbage collector from then on, and everything else not?"""

import gc

import pytest

from grader.judging.loading import uncollected


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
