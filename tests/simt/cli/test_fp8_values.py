"""The values of cuda_fp8.h, bit for bit: are they those of CUDA's own header?"""

import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("fp8_values.cu")
CUDA = Path("/usr/local/cuda/include")
# What the program prints with CUDA 13.0's header, compiled by g++ 12: NVIDIA's own emulation for hosts.
EXPECTED = """
midway 1020 2f7d455077b7af56
double 200000 696687289457b3a5
float 200000 c243fbbd2f43f0bc
bfloat16 65536 ce44d919bc1eda03
half 65536 878ac1f7965ecb03
midway 1020 fc4e2e560f3f4cf6
double 200000 d9fef391908cc848
float 200000 65abc0e87bf219e1
bfloat16 65536 5fc845b0820c9903
half 65536 5d01878b1659b303
midway 1020 97f42da0094c2caa
double 200000 98df02e4a6477e89
float 200000 2f924e0d73bcbb2c
bfloat16 65536 d27339ad317f3d03
half 65536 8b0ec2dfbff69303
midway 1020 56e3852d9d55af0e
double 200000 e7f1beb3e2f58451
float 200000 afe5bdffa50f7097
bfloat16 65536 7b43ff990c48f503
half 65536 e69bd7a2d36a9303
to half 65536 f48342fbc074a283
to half 65536 2231f97f6a123e53
e4m3 180000 8899eaf0bb859e20
e4m3 3068 b02bcf464a294d4a
e5m2 180000 50ab99019c73b949
e5m2 3050 fec92f5f9f452772
vectors 6000 2e3d58568310f915
""".lstrip()


def test_all_values_are_those_of_cudas_header(simt):
    done = simt("run", PROGRAM)
    assert (done.stdout, done.returncode) == (EXPECTED, 0), done.stderr


@pytest.mark.skipif(not (CUDA / "cuda_fp8.h").exists(), reason="no CUDA toolkit")
def test_these_are_the_lines_that_cudas_header_prints(tmp_path):
    source, program = tmp_path / "fp8_values.cpp", tmp_path / "fp8_values"
    source.write_text(PROGRAM.read_text())
    subprocess.run(["g++", "-std=c++17", "-w", f"-I{CUDA}", source, "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == EXPECTED
