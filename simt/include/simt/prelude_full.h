// The same with every operator of torch, for host code that calls them as functions.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/functional.h>
#include <torch/types.h>

#include <simt/torch_cuda.h>
