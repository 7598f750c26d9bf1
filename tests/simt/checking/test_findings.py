"""Is a finding told in words that do not change from run to run?"""

from dataclasses import replace

from simt.checking import findings
from simt.checking.findings import Finding

RACE = Finding(
    check="race",
    severity="error",
    message="Two threads write.",
    block=(1, 0, 0),
    thread=(0, 0, 0),
    other_block=(1, 0, 0),
    other_thread=(5, 0, 0),
    count=2040,
)


def test_the_number_of_occurrences_is_told():
    assert str(RACE).endswith("(2,040 times)")
    assert str(replace(RACE, other_block=None)).endswith("(2,040 times)")
    assert str(replace(RACE, count=1)).endswith("write.")


def test_how_often_two_blocks_race_is_not_told():
    """It depends on which of the two happened to run first."""
    assert str(replace(RACE, other_block=(0, 0, 0))).endswith("write.")


def test_the_advice_fits_two_accesses_in_one_line():
    """Is no barrier asked for "between the two" where both are in one statement, and none at once for two writes?"""
    assert findings._order_accesses("read", "write", False) == "Put a `__syncthreads()` between the two."
    assert findings._order_accesses("write", "write", False) == "Put a `__syncthreads()` between the two."
    assert "end the loop's body with a `__syncthreads()`" in findings._order_accesses("read", "write", True)
    assert findings._order_accesses("write", "write", True).startswith("Give each thread an element of its own.")
