// For all sizes and GPUs.
namespace simple {

#include "../steps/03_register_tiles.py"  // SIDE to attention_kernel

}  // namespace simple
