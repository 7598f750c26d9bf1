"""The output's length lacks the one that the last tap takes: an output too many where the stride divides."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void conv1d_forward(const float* input, const float* weight, float* output, int in_channels, int in_length,
                               int out_channels, int out_length, int kernel_size, int stride, int dilation) {
    int position = blockIdx.x * blockDim.x + threadIdx.x;
    int channel = blockIdx.y;
    int sample = blockIdx.z;
    if (position >= out_length) return;
    float sum = 0.0f;
    for (int c = 0; c < in_channels; c++) {
        for (int k = 0; k < kernel_size; k++) {
            int i = position * stride + k * dilation;
            sum += input[(sample * in_channels + c) * in_length + i] *
                   weight[(channel * in_channels + c) * kernel_size + k];
        }
    }
    output[(sample * out_channels + channel) * out_length + position] = sum;
}

torch::Tensor conv1d_forward_cuda(torch::Tensor input, torch::Tensor weight, int stride, int dilation) {
    int kernel_size = weight.size(2);
    int out_length = (input.size(2) - dilation * (kernel_size - 1)) / stride + 1;
    auto output = torch::zeros({input.size(0), weight.size(0), out_length}, input.options());
    dim3 grid((out_length + 127) / 128, weight.size(0), input.size(0));
    conv1d_forward<<<grid, 128>>>(input.data_ptr<float>(), weight.data_ptr<float>(), output.data_ptr<float>(),
                                  input.size(1), input.size(2), weight.size(0), out_length, kernel_size, stride,
                                  dilation);
    return output;
}
"""

conv1d = load_inline(
    name="conv1d_forward",
    cpp_sources="torch::Tensor conv1d_forward_cuda(torch::Tensor input, torch::Tensor weight, int stride, int dilation);",
    cuda_sources=source,
    functions=["conv1d_forward_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, dilation=1, bias=False):
        super().__init__()
        self.conv1d = nn.Conv1d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation, bias=bias)
        self.stride = stride
        self.dilation = dilation

    def forward(self, x):
        return conv1d.conv1d_forward_cuda(x, self.conv1d.weight, self.stride, self.dilation)
