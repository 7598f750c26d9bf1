// cub's functions for the whole device.
#pragma once

#include <simt/cub_device_reduce.h>
#include <simt/cub_device_scan.h>
#include <simt/cub_device_select.h>
#include <simt/cub_device_sort.h>
#include <simt/cub_device_histogram.h>
#include <simt/cub_device_segments.h>
#include <simt/cub_device_each.h>
