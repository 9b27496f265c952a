# SPDX-License-Identifier: MIT
"""Weights and the optimiser's state to a file and back, to go on training."""
import tempfile

from tinycore import Tensor, nn
from tinycore.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

Tensor.manual_seed(5)
x, y = Tensor.randn(16, 4), Tensor.randn(16, 2)


def start():
    model = nn.Linear(4, 2)
    return model, nn.optim.Adam(get_parameters(model), lr=0.1)


def step(model, optimizer):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean().backward()
    optimizer.step()
    return loss.item()


model, optimizer = start()
step(model, optimizer)
with tempfile.TemporaryDirectory() as folder:
    safe_save(get_state_dict(model), f"{folder}/model.safetensors", metadata={"step": "1"})
    safe_save(get_state_dict(optimizer), f"{folder}/adam.safetensors")
    again, resumed = start()
    load_state_dict(again, safe_load(f"{folder}/model.safetensors"))
    load_state_dict(resumed, safe_load(f"{folder}/adam.safetensors"))
print([step(model, optimizer) == step(again, resumed) for _ in range(3)])
