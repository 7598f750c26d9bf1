// Precompiled for a submission's units: tensors, the common factories, CUDA's names, and the calls from Python.
#pragma once

#include <simt/tensors.h>
#include <simt/torch_cuda.h>
