// Stands in for cub's cub/device/device_segmented_reduce.cuh.
#pragma once
#include <simt/cub_device.h>
