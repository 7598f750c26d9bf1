"""Are GPUs found by the names that people write?"""

import pytest

from simt.devices import DEVICES, UnknownDevice, find_name

LAPTOP = "RTX 4060 Laptop"


@pytest.mark.parametrize(
    "written, name",
    [
        *((name, name) for name in DEVICES),
        ("h100", "H100"),
        ("t4", "T4"),
        (" l-4 ", "L4"),
        ("200", "H200"),
        ("laptop", LAPTOP),
        ("RTX4060", LAPTOP),
        ("rtx 4060 laptop", LAPTOP),
        ("rtx-4060_LAPTOP", LAPTOP),
        ("4060", LAPTOP),
    ],
)
def test_a_name_is_understood(written, name):
    """Do case, spaces and hyphens not count, and is a part enough that belongs to one name?"""
    assert find_name(written) == name


@pytest.mark.parametrize("written, meant", [("100", "A100 or H100"), ("h", "H100 or H200"), ("4", "T4 or L4")])
def test_a_part_of_several_names_is_refused(written, meant):
    """Are the names that it is a part of given?"""
    with pytest.raises(UnknownDevice, match=f"^The GPU '{written}' may be {meant}"):
        find_name(written)


@pytest.mark.parametrize("written", ["", " ", "-", "H20", "H2000", "RTX 406", "B200", "nosuch", "(", "H100 H200"])
def test_another_name_is_refused(written):
    """Is no number cut short, and are the known names given?"""
    with pytest.raises(UnknownDevice, match=r"is unknown\. Choose one of T4, A100, L4, H100"):
        find_name(written)
