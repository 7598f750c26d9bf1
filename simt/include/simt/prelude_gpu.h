// Precompiled for the host code of a submission on a GPU: tensors, the real CUDA, and the calls from Python.
#pragma once

#include <simt/tensors.h>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <simt/function.h>
#include <simt/pybind.h>

#include <gpu/host.h>
#include <gpu/names.h>

namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromPool;
using c10::cuda::OptionalCUDAGuard;
}  // namespace at::cuda
