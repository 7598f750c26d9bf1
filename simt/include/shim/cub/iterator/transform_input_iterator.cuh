// Stands in for cub's cub/iterator/transform_input_iterator.cuh.
#pragma once
#include <simt/cub_iterators.h>
