// Stands in for CUDA's cooperative_groups/memcpy_async.h.
#pragma once
#include <simt/group_copy.h>
