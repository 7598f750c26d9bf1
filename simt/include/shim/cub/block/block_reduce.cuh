// Stands in for cub's cub/block/block_reduce.cuh.
#pragma once
#include <simt/cub.h>
