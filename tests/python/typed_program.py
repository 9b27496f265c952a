# SPDX-License-Identifier: MIT
"""The package as typed programs use it: test_types.py lets mypy check it, and runs it, so that what types say is so."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tinycore
import tinycore.nn.functional as F
from tinycore import Context, Device, DType, Size, Tensor, TinyJit, Variable, dtypes, fft, func, linalg, nn, optim, special
from tinycore.nn.state import get_parameters, get_state_dict, load_state_dict
from tinycore.utils.data import DataLoader, Dataset, TensorDataset, random_split
from typing_extensions import assert_type


# ---- tensors ----
x = Tensor.randn(4, 3, requires_grad=True)
assert_type(x, Tensor)
assert_type(x.shape, Size)
assert_type(x.dtype, DType)
assert_type(x.ndim, int)
assert_type(x.numel(), int)
assert_type(x.requires_grad, bool)
assert_type(x.grad, Tensor | Any)
assert_type(x.allclose(x), bool)
assert_type(Tensor([[1, 2], [3, 4]], dtype="float32", device=Device.DEFAULT), Tensor)
assert_type(Tensor.zeros(2, 3, dtype=dtypes.float16), Tensor)
assert_type(Tensor.zeros((2, 3)), Tensor)
assert_type(Tensor.arange(0, 1, 0.25), Tensor)
assert_type(Tensor.full((2, 2), 1.5), Tensor)
assert_type(Tensor.eye(3).cast(int).float().half().to("CPU"), Tensor)
assert_type(x.zeros_like(), Tensor)

# ---- operators and indices ----
assert_type(2 * x + 1.5 - x / 3 ** x % 2, Tensor)
assert_type(-x @ x.T, Tensor)
assert_type(x == 1, Tensor)
assert_type((x > 0) & (x < 1) | ~(x != 0), Tensor)
x2 = x.detach().clone()
x2 += 1
assert_type(x2, Tensor)
assert_type(x[0], Tensor)
assert_type(x[..., 1:, None], Tensor)
assert_type(x[:, [0, 2]], Tensor)
assert_type(x[x > 0], Tensor)
x2[0] = 1
x2[:, 1] = Tensor([1.0, 2, 3, 4])
for row in x:
    assert_type(row, Tensor)

# ---- methods ----
assert_type(x.reshape(2, -1).permute(1, 0).flip(0).unsqueeze(-1).expand(-1, -1, 2), Tensor)
assert_type(x.reshape((2, 6)).sum(axis=1, keepdim=True), Tensor)
assert_type(x.sum(dim=(0, 1)).exp().log().sqrt(), Tensor)
assert_type(x.softmax(-1).argmax(dim=1), Tensor)
assert_type(x.pad((1, 1)).shrink(((0, 2), None)), Tensor)
assert_type(Tensor.cat([x, x], 1), Tensor)
assert_type(x.cat(x, dim=0), Tensor)
assert_type(Tensor.stack([x, x], dim=-1), Tensor)
assert_type(Tensor.einsum("ij,kj->ik", x, x), Tensor)
assert_type(x.split(2), list[Tensor])
values, places = x.sort(dim=1)
assert_type(values, Tensor)
assert_type(x.topk(2).indices, Tensor)
assert_type(Tensor.ones(1, 1, 4, 4).max_pool2d((2, 2)), Tensor)
assert_type((x > 0).where(x, 0.0), Tensor)
assert_type(x.add(1, alpha=2).clamp(min=0).masked_fill(x > 1, 1), Tensor)
assert_type(x.detach().relu_(), Tensor)
assert_type(x.quantile(0.5, dim=1), Tensor)
assert_type(x.realize(), Tensor)
assert_type(x.square().sum().gradient(x), list[Tensor])
assert_type(x.square().mean().backward(), Tensor)
numbers: list[list[float]] = x.tolist()
number: float = x.sum().item()
assert_type(float(x.sum()), float)
assert_type(len(x), int)

# ---- functions ----
assert_type(tinycore.tensor([1, 2, 3]), Tensor)
assert_type(tinycore.exp(tinycore.zeros(2)), Tensor)
assert_type(tinycore.float32, DType)
assert_type(tinycore.column_stack([x, x]), Tensor)
assert_type(tinycore.result_type(x, 1), DType)
assert_type(linalg.norm(x, dim=1), Tensor)
assert_type(linalg.inv(linalg.pinv(x) @ x), Tensor)
assert_type(linalg.eigh(x.T @ x).eigenvalues, Tensor)
assert_type(fft.rfft(x), Tensor)
assert_type(fft.fftn(fft.rfft(x), dim=(0,)), Tensor)
assert_type(special.expit(x) + special.entr(x), Tensor)
slope: Tensor = func.grad(lambda a: (a * a).sum())(x)  # of a dict, a dict
each: Tensor = func.vmap(lambda a: a.sum(), in_dims=0)(x)
value, slope = func.jvp(lambda a: a * a, (x,), (x,))
n = Variable("n", 1, 4)
assert_type(n.bind(3), Tensor)
assert_type(Device.get_available_devices(), list[str])
assert_type(dtypes.finfo(dtypes.float32).eps, float)
assert_type(dtypes.is_float("float16"), bool)


# ---- networks ----
class Net(nn.Module):
    def __init__(self, n_hidden: int = 16) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=(3, 3), padding="same")
        self.norm = nn.BatchNorm2d(4)
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(4 * 8 * 8, n_hidden), nn.GELU(), nn.Dropout(0.1))
        self.head = nn.Linear(n_hidden, 10)
        self.scale = nn.Parameter(Tensor.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x)), inplace=False)
        assert_type(x, Tensor)
        logits: Tensor = self.head(self.body(x))
        return logits * self.scale


net = Net()
assert_type(net.train(), Net)
assert_type(net.head(Tensor.ones(2, 16)), Tensor)
assert_type(net.head.weight, Tensor)
assert_type(net.head.in_features, int)
assert_type(dict(net.named_parameters()), dict[str, Tensor])
assert_type(net.state_dict(), dict[str, Tensor])
assert_type(get_state_dict(net), dict[str, Tensor])
assert_type(get_parameters(net), list[Tensor])
load_state_dict(net, net.state_dict())
y, (h, c) = nn.LSTM(3, 5, batch_first=True)(Tensor.ones(2, 4, 3))
assert_type(y, Tensor)
assert_type(c, Tensor)
assert_type(nn.GRU(3, 5)(nn.utils.rnn.pack_sequence([x]))[0], nn.utils.rnn.PackedSequence)
assert_type(nn.GRU(3, 5)(Tensor.ones(2, 4, 3))[1], Tensor)
assert_type(nn.MultiheadAttention(8, 2)(Tensor.ones(3, 1, 8), Tensor.ones(3, 1, 8), Tensor.ones(3, 1, 8))[1], Tensor | None)
assert_type(nn.TransformerEncoderLayer(8, 2, 16)(Tensor.ones(3, 1, 8)), Tensor)
assert_type(nn.Embedding(10, 4)(Tensor([1, 2])), Tensor)
assert_type(nn.LayerNorm(4)(Tensor.ones(2, 4)), Tensor)
assert_type(F.cross_entropy(Tensor.ones(2, 10), Tensor([1, 2]), reduction="sum"), Tensor)
assert_type(F.dropout(x, 0.5, training=False), Tensor)
assert_type(F.pad(x, (1, 1)), Tensor)
nn.init.xavier_uniform_(net.head.weight)
assert_type(nn.utils.clip_grad_norm_(net.parameters(), 1.0), Tensor)


# ---- training ----
class Squares(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> tuple[float, float]:
        return float(i), float(i * i)


def batches(data: DataLoader) -> Iterator[Any]:
    yield from data


images, labels = Tensor.rand(8, 1, 8, 8), Tensor.randint(8, low=0, high=10)
loader = DataLoader(TensorDataset(images, labels), batch_size=4, shuffle=True, drop_last=True)
parts = random_split(Squares(), [3, 1])
assert_type(len(parts[0]), int)
loss_of = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99))
schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
assert_type(optimizer.lr, float)
assert_type(schedule.get_last_lr(), list[float])


@TinyJit
def predict(batch: Tensor, scale: float = 1.0) -> Tensor:
    logits: Tensor = net(batch)  # of a module that a program writes: Any, as PyTorch's
    return (logits * scale).argmax(1).realize()


for a, b in batches(loader):
    optimizer.zero_grad()
    loss = loss_of(net(a), b)
    assert_type(loss, Tensor)
    loss.backward()
    optimizer.step()
    schedule.step()
with tinycore.no_grad(), Context(DEBUG=0):
    for _ in range(3):
        assert_type(predict(images), Tensor)
with Tensor.train(False):
    net.eval()
