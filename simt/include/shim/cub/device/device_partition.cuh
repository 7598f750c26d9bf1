// Stands in for cub's cub/device/device_partition.cuh.
#pragma once
#include <simt/cub_device.h>
