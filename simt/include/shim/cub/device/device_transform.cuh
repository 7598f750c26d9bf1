// Stands in for cub's cub/device/device_transform.cuh.
#pragma once
#include <simt/cub_device.h>
