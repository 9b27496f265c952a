# SPDX-License-Identifier: MIT
"""The state of a model into a safetensors file, and back into another."""
import tempfile

from tinycore import nn
from tinycore.nn.state import get_state_dict, load_state_dict, safe_load, safe_save

model, other = nn.Linear(3, 2), nn.Linear(3, 2)
with tempfile.TemporaryDirectory() as folder:
    safe_save(get_state_dict(model), f"{folder}/model.safetensors")
    load_state_dict(other, safe_load(f"{folder}/model.safetensors"))

for name, tensor in get_state_dict(other).items():
    print(name, tensor.shape, (tensor == get_state_dict(model)[name]).all().item())
