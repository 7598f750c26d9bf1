// Stands in for cub's cub/iterator/discard_output_iterator.cuh.
#pragma once
#include <simt/cub_iterators.h>
