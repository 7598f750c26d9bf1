// Stands in for cub's cub/util_type.cuh.
#pragma once
#include <simt/cub.h>
