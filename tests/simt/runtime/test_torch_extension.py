"""Is torch's warning that there is no GPU left out where simt imports its builder, and every other warning shown?"""

import inspect
import logging

from simt.runtime.torch_extension import cpp_extension


def make_record(message, *values):
    return logging.makeLogRecord({"msg": message, "args": values})


def test_only_the_warning_of_a_missing_gpu_is_left_out():
    logger = logging.getLogger(cpp_extension.__name__)
    warning = "No CUDA runtime is found, using CUDA_HOME='%s'"
    assert warning in inspect.getsource(cpp_extension)
    assert not logger.filter(make_record(warning, "/usr/local/cuda"))
    assert logger.filter(make_record("TORCH_CUDA_ARCH_LIST is not set"))
