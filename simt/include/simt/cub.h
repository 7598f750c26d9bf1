// The block and warp primitives of cub, without those of the whole device.
#pragma once

#include <simt/cub_block.h>
#include <simt/cub_move.h>
#include <simt/cub_warp.h>
