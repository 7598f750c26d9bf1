// The block's and the warp's primitives of cub; what a whole device does together is not here.
#pragma once

#include <simt/cub_block.h>
#include <simt/cub_move.h>
#include <simt/cub_warp.h>
