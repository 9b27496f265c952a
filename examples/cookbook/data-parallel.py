# SPDX-License-Identifier: MIT
"""A network trained on two devices, here two that share the machine's processors. Each has all of the weights and half of each
batch; where the loss is summed over the batch, the gradients of both halves are added up."""
from tinycore import Tensor, TinyJit, nn

DEVICES = ("CPU", "CPU:1")  # or two cards of one kind
Tensor.manual_seed(1)
x = Tensor.randn(256, 8)
y = (x[:, :4].sum(1) > x[:, 4:].sum(1)).cast("int32")


def train(devices):
    Tensor.manual_seed(2)
    layers = nn.Linear(8, 32), nn.Linear(32, 2)
    parameters = nn.state.get_parameters(layers)
    for p in parameters:
        p.shard_(devices)  # whole on each
    optimizer = nn.optim.AdamW(parameters, lr=0.01)

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = layers[1](layers[0](x).relu()).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss

    for i in range(60):
        at = i % 4 * 64
        loss = step(x[at:at + 64].shard(devices, 0), y[at:at + 64].shard(devices, 0))
    return loss.item(), layers


one, _ = train(["CPU"])
two, (first, second) = train(DEVICES)
print(f"loss {one:.3f} on one device, {two:.3f} on two")
# A layer too large for one device: its outputs are cut, and so is what the next one reads.
first.weight.shard_(DEVICES, 0)
first.bias.shard_(DEVICES, 0)
second.weight.shard_(DEVICES, 1)
right = second(first(x.shard(DEVICES)).relu()).argmax(1) == y.shard(DEVICES)
print(f"{right.mean().item():.2f} are right")
