// The same with every operator of torch, for host code that calls them as functions.
#pragma once

#include <ATen/ATen.h>
#include <torch/types.h>

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
