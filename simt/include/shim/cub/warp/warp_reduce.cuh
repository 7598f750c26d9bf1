// Stands in for cub's cub/warp/warp_reduce.cuh.
#pragma once
#include <simt/cub.h>
