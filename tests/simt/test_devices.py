"""Are GPUs found by the names that people write?"""

import pytest

import simt
from simt.devices import DEFAULT, DEVICES, UnknownDevice, find_name, read_default

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
        (200, "H200"),
        ("NVIDIA H200", "H200"),
        ("Tesla T4", "T4"),
        ("A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", LAPTOP),
    ],
)
def test_a_name_is_understood(written, name):
    """Do case, spaces, hyphens and the driver's additions not count, and is a part enough that belongs to one name?"""
    assert find_name(written) == name


@pytest.mark.parametrize("written, meant", [("100", "A100 or H100"), ("h", "H100 or H200"), ("4", "T4 or L4")])
def test_a_part_of_several_names_is_refused(written, meant):
    """Are the names that it is a part of given?"""
    with pytest.raises(UnknownDevice, match=f"^The GPU '{written}' may be {meant}"):
        find_name(written)


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "-",
        "H20",
        "H2000",
        "RTX 406",
        "B200",
        "GB200",
        "nosuch",
        "(",
        "é",
        None,
        "H100 H200",
        "NVIDIA",
        "80GB",
        "H100 PCIe",
        "NVIDIA H100 NVL",
        "NVIDIA GH200",
    ],
)
def test_another_name_is_refused(written):
    """Is no number cut short, and are the known names given?"""
    with pytest.raises(UnknownDevice, match=r"is unknown\. Choose one of T4, A100, L4, H100"):
        find_name(written)


def test_every_reader_understands_the_same_names():
    """Does what takes a GPU's name understand it as find_name does, and refuse another one in the same words?"""
    from grader import pictures
    from simt.runtime import library

    assert simt.occupancy("nvidia h200", 256) == simt.occupancy("H200", 256)
    assert pictures.roof_of("a100-sxm4-80gb") == pictures.roof_of("A100")
    with library.run(device="tesla t4"):
        assert library.options.find_device() is DEVICES["T4"]
    for read in (
        lambda name: simt.occupancy(name, 256),
        pictures.roof_of,
        lambda name: library.run(device=name).__enter__(),
    ):
        with pytest.raises(UnknownDevice, match=r"^The GPU 'B9000' is unknown\. Choose one of T4, A100"):
            read("B9000")


@pytest.mark.parametrize("written, name", [("nvidia h100", "H100"), ("", "T4"), (None, "T4")])
def test_the_variable_names_the_default(monkeypatch, written, name):
    """Is SIMT_DEVICE understood likewise, and no name when it is empty?"""
    monkeypatch.delenv("SIMT_DEVICE", raising=False)
    if written is not None:
        monkeypatch.setenv("SIMT_DEVICE", written)
    assert read_default() == name
    monkeypatch.setenv("SIMT_DEVICE", "B9000")
    with pytest.raises(UnknownDevice, match=r"^SIMT_DEVICE: The GPU 'B9000' is unknown\."):
        read_default()


def test_the_default_has_the_smallest_limits_of_a_block():
    """Does a block that fits the default GPU fit every other one?"""
    limits = (
        "threads_per_multiprocessor",
        "registers_per_multiprocessor",
        "shared_per_block",
        "shared_per_block_optin",
    )
    for limit in (*limits, "shared_per_multiprocessor"):
        assert getattr(DEVICES[DEFAULT], limit) == min(getattr(gpu, limit) for gpu in DEVICES.values()), limit
