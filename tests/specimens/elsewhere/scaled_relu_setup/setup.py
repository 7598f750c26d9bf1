"""Build the extension."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="scaled_relu_extension",
    ext_modules=[
        CUDAExtension(
            name="scaled_relu_extension",
            sources=["binding.cpp", "kernel.cu"],
            extra_compile_args={"cxx": ["-O3"], "nvcc": ["-O3", "--use_fast_math"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
