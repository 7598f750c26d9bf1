// Stands in for cub's cub/block/block_load.cuh.
#pragma once
#include <simt/cub.h>
