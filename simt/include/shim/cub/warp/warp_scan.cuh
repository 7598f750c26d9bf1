// Stands in for cub's cub/warp/warp_scan.cuh.
#pragma once
#include <simt/cub.h>
