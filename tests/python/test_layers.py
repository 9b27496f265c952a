#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What layers drop, and what programs hang on modules.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import checks
import numpy as np
import tinycore.optim as optim
from tinycore import Tensor, nn


def test_dropping():
    """Channels are dropped as a whole, and only in training; alpha_dropout() keeps mean and variance."""
    Tensor.manual_seed(2)
    drop = nn.Dropout2d(0.25)
    x = Tensor.ones(40, 50, 2, 3)
    found = drop.train()(x).numpy()
    checks.equal({one.tobytes() for one in found.reshape(-1, 6)}, {np.full(6, one, "float32").tobytes() for one in (0, 4 / 3)})
    checks.true(abs((found == 0).mean() - 0.25) < 0.05)
    checks.equal(drop.eval()(x).tolist(), x.tolist())
    found = nn.AlphaDropout(0.3).train()(Tensor.randn(50000)).numpy()
    checks.true(abs(found.mean()) < 0.05 and abs(found.std() - 1) < 0.05, (found.mean(), found.std()))
    F = nn.functional
    rows = Tensor([[0.0, 1.0, 2.0]] * 3000).requires_grad_()
    drawn = F.gumbel_softmax(rows, hard=True)
    checks.true(np.abs(drawn.detach().numpy().mean(0) - F.softmax(rows[0], 0).detach().numpy()).max() < 0.04)
    checks.equal(set(drawn.flatten().tolist()), {0.0, 1.0})
    checks.equal(F.relu(x.neg_(), inplace=True) is x and x.max().item(), 0)


def test_names():
    """Programs import optimisers by this name."""
    checks.true(optim is nn.optim and optim.lr_scheduler is nn.optim.lr_scheduler and __import__("tinycore").optim is optim)


def test_hooks():
    """What they give takes the place of inputs and results, until they are removed."""
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = Tensor.eye(2)
    seen, x = [], Tensor([1.0, 2.0])
    before = layer.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 10,))
    after = layer.register_forward_hook(lambda module, inputs, result: seen.append((module, inputs[0].tolist(), result.tolist())))
    checks.equal(nn.Sequential(layer)(x).tolist(), [10, 20])
    checks.equal(seen, [(layer, [10, 20], [10, 20])])
    before.remove()
    with layer.register_forward_hook(lambda module, inputs, result: -result):
        checks.equal(layer(x).tolist(), [-1, -2])
    after.remove()
    checks.equal((layer(x).tolist(), len(seen)), ([1, 2], 2))
    checks.raises(TypeError, layer.register_forward_hook, None)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    nn.utils.vector_to_parameters(vector * 3, layer.parameters())
    checks.equal(layer.weight.tolist(), [[3, 0], [0, 3]])


checks.run(globals())
