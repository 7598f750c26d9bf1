// Everything of CUDA that a kernel and its host code may name.
#pragma once

#include <simt/atomic.h>
#include <simt/bfloat16.h>
#include <simt/cooperative_groups.h>
#include <simt/cuda_api.h>
#include <simt/half.h>
#include <simt/host.h>
#include <simt/math.h>
#include <simt/runtime.h>
#include <simt/types.h>
#include <simt/warp.h>
