# SPDX-License-Identifier: MIT
"""Images through a filter, a pool and a layer with weights of its own."""
from tinycore import Tensor, nn

image = Tensor.zeros(1, 1, 6, 6)
image[:, :, :, 3:] = 1.0
edges = Tensor([[-1.0, 0, 1]] * 3).reshape(1, 1, 3, 3)
print(image.conv2d(edges, padding=1)[0, 0, 2].tolist())
print(image.max_pool2d(2)[0, 0].tolist())

block = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
print(block(image).shape)
