// Stands in for cub's cub/block/block_scan.cuh.
#pragma once
#include <simt/cub.h>
