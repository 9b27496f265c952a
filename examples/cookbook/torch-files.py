# SPDX-License-Identifier: MIT
"""PyTorch's files, both ways. Nothing that is in one is run, and tensors share the memory of the file."""
import tempfile

import tinycore
import torch
from tinycore import Tensor, nn

theirs, mine = torch.nn.GRU(3, 4, batch_first=True), nn.GRU(3, 4, batch_first=True)
with tempfile.TemporaryDirectory() as folder:
    torch.save(theirs.state_dict(), f"{folder}/gru.pt")
    mine.load_state_dict(tinycore.load(f"{folder}/gru.pt"))
    x = torch.arange(6.0).reshape(1, 2, 3) / 6
    y, _ = mine(Tensor(x.numpy()))
    print("same:", torch.allclose(theirs(x)[0], torch.tensor(y.numpy()), atol=1e-6))

    tinycore.save({"model": mine.state_dict(), "epoch": 3}, f"{folder}/ours.pt")
    print(sorted(torch.load(f"{folder}/ours.pt")), list(mine.state_dict())[:2])
    torch.save(theirs, f"{folder}/module.pt")
    try:
        tinycore.load(f"{folder}/module.pt")
    except ValueError as error:
        print(str(error).split(": ")[1])
