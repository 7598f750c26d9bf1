// Stands in for cub's cub/iterator/arg_index_input_iterator.cuh.
#pragma once
#include <simt/cub_iterators.h>
