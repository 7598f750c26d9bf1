// Stands in for CUDA's cooperative_groups/reduce.h.
#pragma once
#include <simt/group_reduce.h>
