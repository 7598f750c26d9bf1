// Stands in for cub's cub/util_allocator.cuh.
#pragma once
#include <simt/cub_allocator.h>
