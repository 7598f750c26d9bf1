// The block and warp primitives of cub, and its functions for the whole device.
#pragma once

#include <simt/cub_allocator.h>
#include <simt/cub_block.h>
#include <simt/cub_device.h>
#include <simt/cub_move.h>
#include <simt/cub_warp.h>
