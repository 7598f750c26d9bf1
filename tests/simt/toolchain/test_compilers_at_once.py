"""Does $MAX_JOBS bound the compilers that run at once?"""

import subprocess
import sys

import pytest

# Runs three commands at once, each of which writes when it began and ended; prints how many overlapped at most.
PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from simt.toolchain.compilers import run_compiler
code = "import time; begun = time.time(); time.sleep(0.2); print(begun, time.time())"
with ThreadPoolExecutor(3) as pool:
    done = list(pool.map(lambda _: run_compiler([sys.executable, "-S", "-c", code]).stdout.split(), range(3)))
times = [tuple(map(float, each)) for each in done]
print(max(sum(begun <= at < ended for begun, ended in times) for at, _ in times))
"""


@pytest.mark.parametrize("jobs, most", [("1", "1"), ("2", "2"), ("many", "3")])
def test_at_most_so_many_run(jobs, most, monkeypatch):
    monkeypatch.setenv("MAX_JOBS", jobs)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == most
