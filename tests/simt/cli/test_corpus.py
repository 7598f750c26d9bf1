"""Do programs as documentation, textbooks and benchmark suites publish them run unchanged, and does no check object?

Each compares its results with those of a CPU reference of its own, and prints PASSED last. What an H200 printed is kept
by benchmarks/validate/programs.py --corpus.
"""

from collections import Counter

import pytest

from benchmarks.validate.programs import CORPUS, judge, list_programs, run_on_cpu
from tests.sample import sample

PROGRAMS = list_programs(CORPUS)
FEW = ["julia_set_bitmap"]  # run by the quick tests
LABELS = {"title", "features", "args", "files", "flags", "refused", "differs"}
FEATURES = (
    *("alignment", "architecture_macros", "atomics", "c_files", "callbacks", "clocks", "colliding_macros"),
    *("cooperative_groups", "cooperative_launch", "cub", "cub_device", "cubemaps", "cuda_arrays", "curand_device"),
    *("curand_host", "deprecated_names", "device_properties", "driver_api", "events", "graphs", "inline_ptx"),
    *("layered_textures", "linear_texture", "macros", "managed_memory", "memory_fences", "memory_pools", "openmp"),
    *("pinned_memory", "pitched_memory", "several_files", "shared_word_order", "spaced_launches", "std_flags"),
    *("stream_priorities", "streams", "surfaces", "templates", "textures", "thrust", "untaken_branches"),
    *("warp_shuffles", "warp_votes"),
)


@pytest.mark.parametrize("name", sample([program.name for program in PROGRAMS], FEW))
def test_it_runs_unchanged(name):
    """Does it print what it should and end with 0, and the same with every check on, which find nothing?

    Or is it refused by name in one sentence? What it should print is what an H200 printed, if it has run there.
    """
    program = next(one for one in PROGRAMS if one.name == name)
    plain = run_on_cpu(program)
    assert not judge(program, plain).isupper(), plain.stdout + plain.stderr
    if "refused" in program.labels:
        assert len(plain.stderr.strip().splitlines()) == 1
        return
    checked = run_on_cpu(program, "check")
    assert (checked.returncode, checked.stdout) == (0, plain.stdout), checked.stdout + checked.stderr
    assert "No check found anything" in checked.stderr, checked.stderr


def test_every_program_says_what_it_is():
    """Has each a title and features, are its files there, and is nothing in the folder that is not listed?"""
    listed = {file for program in PROGRAMS for file in program.files}
    for program in PROGRAMS:
        assert program.labels.get("title") and program.features, program.name
        assert all(file.is_file() for file in program.files), program.name
        assert program.labels.keys() <= LABELS, program.name
    sources = {file for ending in ("cu", "cpp", "c") for file in CORPUS.rglob(f"*.{ending}")}
    assert sources == listed


def test_there_are_enough_of_each_feature():
    """Are there at least 120 programs, at most two of them refused, and is each of these features in at least three?"""
    counted = Counter(feature for program in PROGRAMS for feature in program.features)
    assert sum(program.expected.is_file() for program in PROGRAMS) >= 184
    others = [program.name for program in PROGRAMS if program.labels.keys() & {"refused", "differs"}]
    assert len(PROGRAMS) >= 120 and len(others) <= 2, others
    assert not {feature: counted[feature] for feature in FEATURES if counted[feature] < 3}
