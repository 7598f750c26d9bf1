// Stands in for cub's cub/cub.cuh.
#pragma once
#include <simt/cub.h>
