// Stands in for cub's cub/device/device_memcpy.cuh.
#pragma once
#include <simt/cub_device.h>
