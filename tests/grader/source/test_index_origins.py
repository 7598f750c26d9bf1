"""Are the lines named that compute an index which two threads share, or which comes from memory never written?"""

import pytest

from grader.source.index_origins import find_same_index, find_unset_index

KERNEL = """__global__ void k(const float* x, float* y, const int* begins) {
    const int i = threadIdx.x;
    int place = begins[i / 32];
    place += i % 4;
    STORE
}
"""
RACE = (
    "Thread (32, 0, 0) of block (0, 0, 0) writes element 3 of `y`, which thread (1, 0, 0) of the same block writes in "
    "line 5 without a barrier in between."
)


@pytest.mark.parametrize(
    "store, says",
    [
        ("y[place] = x[i];", "Both threads have the same `place`. Check what line 3 and line 4 compute."),
        ("if (i > 0) y[place] = x[i];", "Both threads have the same `place`."),
        ("y[i] = x[i];", "Check what line 2 computes."),
        ("y[place + 1] = x[i];", ""),
        ("y += place; y[i] = x[i];", ""),
        ("y[x[place]] = x[i];", ""),
    ],
)
def test_an_index_that_two_threads_share(store, says):
    """Is it said where the index of a store is computed that two threads make at one element?"""
    place = find_same_index(RACE, KERNEL.replace("STORE", store).split("\n"), 5)
    assert (says in place.words and place.lines == ((2,) if "line 2" in says else ())) if says else place is None


@pytest.mark.parametrize(
    "stores, says",
    [
        (
            "y[place] = x[i];\n    if (i > 2) y[i] = 0.0f;",
            "Line 5 stores at `place` and line 6 at `i`, which are the same",
        ),
        ("y[i] = x[i];\n    if (i > 2) y[i] = 0.0f;", ""),
        ("y[place] = x[i];\n    y[i + 1] = 0.0f;", ""),
    ],
)
def test_two_stores_of_two_indices(stores, says):
    """Are two indices named that are one element of a kernel's output?"""
    place = find_same_index(RACE, KERNEL.replace("STORE", stores).split("\n"), 6)
    assert (says in place.words and not place.lines) if says else place is None
    shared = KERNEL.replace("STORE", stores).replace("float* y", "float* z")
    assert find_same_index(RACE, shared.split("\n"), 6) is None


def test_another_race_is_left_out():
    """Is nothing said of a line that does not store, and of a race with a read?"""
    code = KERNEL.replace("STORE", "y[place] = x[i];").split("\n")
    assert find_same_index(RACE.replace("line 5", "line 3"), code, 5) is None
    assert find_same_index(RACE.replace("writes element", "reads element"), code, 5) is None


@pytest.mark.parametrize(
    "element, store, says",
    [
        (2143120166, "y[place] = x[i];", "Check that all that line 3 and line 4 use for `place` was set before."),
        (2143649740, "y[place + x[i]] = 0;", "from memory that no thread has written."),
        (1000, "y[place] = x[i];", ""),
    ],
)
def test_an_index_of_memory_that_was_never_written(element, store, says):
    """Is an index about as large as the word that fills unwritten memory explained, and no other?"""
    message = f"Thread (41, 0, 0) of block (0, 0, 0) writes element {element} of `x` (10 elements): past its end."
    place = find_unset_index(message, KERNEL.replace("STORE", store).split("\n"), 5)
    assert place.words.endswith(says) if says else place is None
