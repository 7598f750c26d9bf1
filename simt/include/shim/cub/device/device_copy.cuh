// Stands in for cub's cub/device/device_copy.cuh.
#pragma once
#include <simt/cub_device.h>
