"""cuRAND's Sobol generators and MT19937: results of libcurand on the host, torch's Sobol engine, and misuse."""

import pytest
import torch

from tests.simt.cli.curand_quasi_programs import DEVICE, HOST, STATUSES
from tests.simt.cli.sources import line_of
from tests.simt.include import sobol_table

# What curandCreateGeneratorHost of cuRAND 10.4.5 gives, which needs no GPU: FNV-1a hashes of the results' bytes.
# benchmarks/validate/curand.py compares them with the library.
HASHES = {
    ("", "sobol32"): "d9e7b145",
    ("", "sobol32_all"): "e11f5edf",
    ("", "sobol64_all"): "710e2c16",
    ("201", "uniform"): "75215d35",
    ("201", "uniform_double"): "711907e9",
    ("203", "uniform"): "75215d35",
    ("203", "uniform_double"): "86fd70ea",
    ("201", "poisson"): "a14028af",
    ("203", "poisson"): "a14028af",
    ("142", "mt19937"): "5fb6dbcd",
    ("142", "uniform"): "4ee9ff12",
    ("142", "uniform_double"): "bd7ed9ad",
}
# First results of the same, whose last bits differ.
NORMALS = {
    ("201", "normal"): (-6.3379573822021484, 0, 0.67448973655700684, -0.67448973655700684, -0.3186393678188324),
    ("201", "normal_double"): (-6.3379577545537904, 2.9180993729166e-10, 0.67448975056242511, -0.67448974982973842),
    ("203", "normal_double"): (-8.2923610758135933, 0, 0.67448975019608182, -0.67448975019608159, -0.31863936396437503),
    ("201", "log_normal"): (8.4960029198555276e-06, 2.7182817459106445, 10.474874496459961, 0.70540761947631836),
}


def test_the_table_is_torchs():
    """Is the header what the script makes of torch's direction numbers?"""
    assert sobol_table.HEADER.read_text() == sobol_table.make_header()


def read_cases(text: str) -> dict[tuple[str, str], list[str]]:
    cases, generator = {}, ""
    for line in text.splitlines():
        name, *words = line.split()
        if words:
            cases[generator, name] = words
        else:
            generator = name
    return cases


@pytest.mark.slow
def test_host_functions_give_what_the_library_gives(simt):
    """Are integers, uniform and Poisson numbers the library's to the bit, and normal ones close?"""
    done = simt("run", "host.cu", files={"host.cu": HOST})
    cases = read_cases(done.stdout)
    assert all(words[:4] == ["0"] * 4 for words in cases.values()), done.stdout + done.stderr
    assert {key: cases[key][4] for key in HASHES} == HASHES
    for key, want in NORMALS.items():
        assert [float(x) for x in cases[key][5:][: len(want)]] == pytest.approx(want, rel=2e-6, abs=1e-12)


@pytest.mark.slow
def test_device_functions_give_what_host_functions_give(simt):
    """Do kernels get the host functions' numbers, after an offset, a jump and with a scramble; are they torch's?"""
    done = simt("run", "device.cu", files={"device.cu": DEVICE})
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["111", "111111"]] * 16, done.stdout + done.stderr
    points = torch.quasirandom.SobolEngine(8).fast_forward(77).draw(40, dtype=torch.float64)
    for d, (short, long) in enumerate(zip(rows[:8], rows[8:], strict=True)):
        assert [(int(x) >> 2) * 2.0**-30 for x in short[2:]] == points[:, d].tolist()
        assert [int(x) >> 32 for x in long[2:]] == [int(x) for x in short[2:]]


@pytest.mark.slow
def test_a_checked_run_finds_nothing(simt):
    """Is the device program free of findings?"""
    done = simt("check", "device.cu", files={"device.cu": DEVICE})
    assert done.returncode == 0, done.stderr


STATUS_LINES = """\
create 103
seed 103
dimensions 104 104 103 104
offset 103
orders 104 104 104 0 104 104 104 0 104 104 0 104
bits 103 103 103 0
sets 104 104 0
length 105
 0 2147483648 3221225472 0 2147483648 1073741824 1073741824 1610612736 3758096384 3221225472 1610612736 3758096384
odd 0 0
start """


def test_statuses(simt):
    """Is each wrong call answered with the library's number, and are dimensions that simt lacks reported?"""
    done = simt("run", "statuses.cu", files={"statuses.cu": STATUSES})
    assert done.stdout == STATUS_LINES + "0\n", done.stderr
    assert "got 2000 dimensions. simt has Sobol's first 1111, cuRAND has 20000. Use fewer here." in done.stderr
    done = simt("check", "statuses.cu", "beyond")
    assert f"statuses.cu, line {line_of(STATUSES, '// starts')}" in done.stderr
    assert "simt has Sobol's first 1,111 dimensions" in done.stderr
