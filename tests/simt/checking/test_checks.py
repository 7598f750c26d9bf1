"""The labelled programs in checks/: is each defect found first and rightly named, and no sound program reported?

`make test` runs a few of them; `python benchmarks/validate/checks.py` runs all and prints the rates.
"""

import collections
import dataclasses
from pathlib import Path

import pytest

from benchmarks.validate import checks
from tests.sample import sample

ALL = {s.name: s for s in checks.read_specimens()}

# For each check one plain defect, and of two a sound program that looks like one.
FEW = """
    out_of_bounds_no_guard sound_carved_shared misaligned_float4_rows uninitialized_accumulator
    race_missing_second_barrier sound_double_buffer barrier_divergence_early_return warp_divergence_early_return
    int_overflow_before_widening schedule_compaction leak_early_return unchecked_error_too_many_threads
""".split()


@pytest.mark.parametrize("name", sample(ALL, FEW))
def test_verdict(name):
    """Is what `python -m simt check` says about a program what its labels say?"""
    assert not checks.find_mismatches(ALL[name], checks.find_findings(ALL[name]))


# ---- the set ----


def test_every_check_has_its_defects():
    """Are there enough defects of each kind, and as many sound programs?"""
    least = {
        "out_of_bounds": 10,
        "illegal_address": 4,
        "misaligned": 4,
        "uninitialized": 8,
        "race": 12,
        "barrier_divergence": 4,
        "warp_divergence": 6,
        "int_overflow": 3,
        "schedule": 3,
        "leak": 2,
        "unchecked_error": 3,
        "device_assert": 2,
    }
    assert set(least) == set(checks.CHECKS)
    defects = collections.Counter(s.check for s in ALL.values())
    assert all(defects[check] >= count for check, count in least.items())
    near = collections.Counter(s.near for s in ALL.values() if s.check == "sound")
    assert all(near[check] >= 2 for check in least)
    assert len(ALL) >= 110 and defects["sound"] * 2 >= len(ALL)


def test_names_tell_the_check():
    assert all(name.startswith(s.check + "_") for name, s in ALL.items())


# ---- the judging ----

FINDING = dict.fromkeys(("block", "thread", "other_block", "other_thread", "index")) | {
    "check": "race",
    "severity": "error",
    "message": "",
    "source": "",
    "line": 0,
    "other_line": 0,
    "array": "",
}


@pytest.fixture
def race():
    """A race between lines 7 and 9, of which only one thread's array is known."""
    return checks.Specimen(
        Path("race_x.cu"), "race", "race", "x", frozenset(), frozenset({7}), frozenset({9}), {"array": "tile"}
    )


def race_finding(**changes) -> dict:
    at = {
        "block": [0, 0, 0],
        "thread": [1, 0, 0],
        "other_block": [0, 0, 0],
        "other_thread": [2, 0, 0],
        "line": 7,
        "other_line": 9,
        "array": "tile",
    }
    return FINDING | at | changes


@pytest.mark.parametrize("changes", [{}, {"line": 9, "other_line": 7}, {"thread": [5, 0, 0]}])
def test_right_naming_is_accepted(race, changes):
    assert checks.find_mismatches(race, [race_finding(**changes)]) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"line": 8},
        {"other_line": 7},
        {"line": 0, "other_line": 0},
        {"thread": None},
        {"other_thread": None},
        {"array": "x"},
        {"check": "leak"},
        {"severity": "warning"},
    ],
)
def test_wrong_naming_is_told(race, changes):
    assert checks.find_mismatches(race, [race_finding(**changes)])


def test_the_defect_must_come_first(race):
    other = FINDING | {"check": "uninitialized", "line": 7}
    assert checks.find_mismatches(race, [other, race_finding()]) and checks.is_found(race, [other, race_finding()])
    assert not checks.find_mismatches(race, [race_finding(), other])


def test_nothing_found_is_told(race):
    assert checks.find_mismatches(race, []) == ["nothing found"] and not checks.is_found(race, [])


def test_a_finding_on_a_sound_program_is_a_false_alarm(race):
    sound = dataclasses.replace(race, check="sound")
    warning = race_finding(severity="warning")
    assert checks.find_mismatches(sound, []) == []
    assert checks.find_mismatches(sound, [race_finding()]) and checks.find_mismatches(sound, [warning])
    allowing = dataclasses.replace(sound, allows=frozenset({"race"}))
    assert checks.find_mismatches(allowing, [warning]) == [] and checks.find_mismatches(allowing, [race_finding()])


def test_a_warning_is_expected_where_the_label_says_so(race):
    harmless = dataclasses.replace(race, severity="warning")
    assert not checks.find_mismatches(harmless, [race_finding(severity="warning")])
    assert checks.find_mismatches(harmless, [race_finding()])


def test_file_and_words_of_the_message_are_compared(race):
    included = dataclasses.replace(race, source="sums.h", says=("in the next",))
    right = race_finding(source="/tmp/sums.h", message="the read in the next pass")
    assert not checks.find_mismatches(included, [right])
    assert checks.find_mismatches(included, [right | {"source": "race.cu"}])
    assert checks.find_mismatches(included, [right | {"message": "x"}])


def test_schedule_needs_no_line(race):
    order = dataclasses.replace(race, check="schedule", near="schedule", labels={})
    assert checks.find_mismatches(order, [FINDING | {"check": "schedule"}]) == []
