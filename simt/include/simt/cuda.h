// Everything of CUDA that a kernel and its host code may name without an #include of their own; cooperative groups
// and math_constants.h come only with theirs, so that a missing one is an error here as with nvcc.
#pragma once

#include <simt/aliases.h>
#include <simt/atomic.h>
#include <simt/bfloat16.h>
#include <simt/cuda_api.h>
#include <simt/cuda_arrays.h>
#include <simt/cuda_peers.h>
#include <simt/surface.h>
#include <simt/texture.h>
#include <simt/graphs.h>
#include <simt/half.h>
#include <simt/host.h>
#include <simt/hints.h>
#include <simt/integers.h>
#include <simt/math.h>
#include <simt/rounding.h>
#include <simt/runtime.h>
#include <simt/types.h>
#include <simt/warp.h>

// Tells a source that simt compiles it, for what is for GPUs alone; `#ifdef __SIMT__`.
#define __SIMT__ 1
