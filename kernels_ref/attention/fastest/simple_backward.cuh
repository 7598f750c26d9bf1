// For all sizes and GPUs.
namespace simple {

#include "../backward.py"  // ROWS to value_kernel

}  // namespace simple
