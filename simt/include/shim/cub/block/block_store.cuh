// Stands in for cub's cub/block/block_store.cuh.
#pragma once
#include <simt/cub.h>
