// ---- any shape, any GPU: the kernels of backward.py ----

namespace general {

#include "../backward.py"  // MAX_GRID_Y
#include "../backward.py"  // conv2d_kernel to images_kernel, T = float

}  // namespace general
