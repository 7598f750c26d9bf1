// Stands in for CUDA's cooperative_groups/reduce.h.
#pragma once
#include <simt/cooperative_groups.h>
