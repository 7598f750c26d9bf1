// Stands in for cub's cub/iterator/cache_modified_output_iterator.cuh.
#pragma once
#include <simt/cub_iterators.h>
