// Stands in for cub's cub/thread/thread_operators.cuh.
#pragma once
#include <simt/cub.h>
