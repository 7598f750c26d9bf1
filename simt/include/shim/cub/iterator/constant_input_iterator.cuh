// Stands in for cub's cub/iterator/constant_input_iterator.cuh.
#pragma once
#include <simt/cub_iterators.h>
