// Stands in for cub's cub/device/device_select.cuh.
#pragma once
#include <simt/cub_device.h>
