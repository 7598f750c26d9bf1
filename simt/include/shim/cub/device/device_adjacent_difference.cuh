// Stands in for cub's cub/device/device_adjacent_difference.cuh.
#pragma once
#include <simt/cub_device.h>
