"""Do calls and instructions of all kinds give under simt what they gave on an H200?

Each program in tests/simt/hardware prints many results; benchmarks/validate/programs.py --hardware keeps the GPU's.
"""

import pytest

from benchmarks.validate.programs import HARDWARE, agree, judge, list_programs, run_on_cpu
from tests.sample import sample

PROGRAMS = list_programs(HARDWARE)


@pytest.mark.parametrize("name", sample([program.name for program in PROGRAMS], ["statuses", "textures"]))
def test_it_prints_what_the_gpu_printed(name):
    """Is every word the same, but for the last digit of numbers with a point?"""
    program = next(one for one in PROGRAMS if one.name == name)
    ran = run_on_cpu(program)
    assert program.expected.is_file()
    assert judge(program, ran) == "as on the GPU", ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("got", "same"),
    [
        ("x 0.25 7", True),
        ("x 0.26 7", True),
        ("x 0.27 7", False),
        ("x 0.25 8", False),
        ("y 0.25 7", False),
        ("x 0.25", False),
        ("x nan 7", False),
    ],
)
def test_outputs_may_differ_in_a_last_digit_alone(got, same):
    assert agree(got, "x 0.25 7", nearly=True) is same
