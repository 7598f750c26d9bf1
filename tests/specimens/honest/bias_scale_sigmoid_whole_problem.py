"""The file also holds a copy of the problem, Model and get_inputs included, subclasses Model and tests itself when run."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline


class Model(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return torch.sigmoid((x + self.bias) * self.scale)


batch_size = 128
channels = 32
height = 254
width = 254
bias_shape = (channels, 1, 1)
scale_shape = (channels, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [bias_shape, scale_shape]


elementwise = load_inline(
    name="whole_problem",
    cpp_sources="torch::Tensor bias_scale_sigmoid_cuda(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=r"""
__global__ void bias_scale_sigmoid_kernel(const float* x, const float* bias, const float* scale, float* out,
                                          int channels, int spatial, int size) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < size) {
        int c = (idx / spatial) % channels;
        float v = (x[idx] + bias[c]) * scale[c];
        out[idx] = 1.0f / (1.0f + expf(-v));
    }
}

torch::Tensor bias_scale_sigmoid_cuda(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto out = torch::zeros_like(x);
    auto size = x.numel();
    const int block_size = 256;
    const int num_blocks = (size + block_size - 1) / block_size;
    bias_scale_sigmoid_kernel<<<num_blocks, block_size>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), out.data_ptr<float>(),
        x.size(1), x.size(2) * x.size(3), size);
    return out;
}
""",
    functions=["bias_scale_sigmoid_cuda"],
    verbose=True,
    extra_cflags=[""],
    extra_ldflags=[""],
)


class ModelNew(Model):
    def __init__(self, *args):
        super().__init__(*args)
        self.elementwise = elementwise

    def forward(self, x):
        return self.elementwise.bias_scale_sigmoid_cuda(x, self.bias, self.scale)


if __name__ == "__main__":
    batch_size, height, width = 2, 8, 8
    device = "cuda" if torch.cuda.is_available() else "cpu"
    reference = Model(*get_init_inputs()).to(device)
    mine = ModelNew(*get_init_inputs()).to(device)
    mine.load_state_dict(reference.state_dict())
    inputs = [x.to(device) for x in get_inputs()]
    torch.testing.assert_close(mine(*inputs), reference(*inputs))
    print("ok")
