#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training on the device of DEV, step by step beside the CPU: the loss, each gradient, and what Adam makes of them.

Every step compares from the same weights, those that the device has, so nothing grows from step to step. The network has
no kinks: an activation next to that of a ReLU would have another slope on one of the two.

Bounds. Sums of n products have errors of about √n u relative to their norm (Higham, Mary 2019; u = 2⁻²⁴), and layers
whose slopes are about 1 hand them on. Along the longest way, to the first weights, √n adds up to 3 + 9 + 20 + 6 forward
and to 6 + 20 + 12 + 74 backward, and six activations and softmax have some 32 u each: 370 u, twice for two devices,
4.4e-5. GRADIENT is a bit more than twice that. Adam's step is compared with the formula in f64 on the device's own gradients: a dozen
roundings of a number below 3 times the rate, and one of the weight.

TAP. Run in the build's environment, by an interpreter that has gi and NumPy; DEV: the device."""
import os

import checks
import numpy as np
from tinycore import Tensor, nn

DEVICE = os.environ["DEV"]
STEPS, BATCH, RATE, BETA1, BETA2, EPS = 8, 8, 1e-3, 0.9, 0.999, 1e-8
U = 2.0**-24
GRADIENT = 1e-4
SHAPES = {"conv1": (8, 1, 3, 3), "bias1": (8,), "conv2": (16, 8, 3, 3), "bias2": (16,), "linear1": (400, 32),
          "bias3": (32,), "linear2": (32, 10), "bias4": (10,)}


def data():
    """Images (STEPS, BATCH, 1, 28, 28) of Fashion-MNIST from 0 to 1, their classes."""
    images, labels = nn.datasets.mnist(fashion=True, device="CPU")[:2]
    n = STEPS * BATCH
    images, labels = images[:n].numpy().astype(np.float32) / 255, labels[:n].numpy().astype(np.int32)
    return images.reshape(STEPS, BATCH, 1, 28, 28), labels.reshape(STEPS, BATCH)


def loss_of(weights, x, y):
    x = x.conv2d(weights["conv1"], weights["bias1"]).gelu().avg_pool2d(2)
    x = x.conv2d(weights["conv2"], weights["bias2"]).gelu().avg_pool2d(2)
    x = (x.flatten(1) @ weights["linear1"] + weights["bias3"]).tanh()
    return (x @ weights["linear2"] + weights["bias4"]).cross_entropy(y)


def beginning():
    """Weights, as arrays: layers keep the size of what goes through."""
    random = np.random.default_rng(1)
    summed = [np.prod(shape[:1] if len(shape) == 2 else shape[1:]) for shape in SHAPES.values()]
    return {name: (random.standard_normal(shape) / np.sqrt(n)).astype(np.float32) for (name, shape), n in
            zip(SHAPES.items(), summed)}


def place(arrays, device):
    return {name: Tensor(array, device=device, requires_grad=True) for name, array in arrays.items()}


def gradients_of(weights, x, y, device):
    """The loss and the gradients, as arrays; the gradients stay with the weights."""
    loss = loss_of(weights, Tensor(x, device=device), Tensor(y, device=device))
    loss.backward()
    return loss.item(), {name: one.grad.numpy() for name, one in weights.items()}


def deviation(found, wanted):
    """The norm of the difference, relative to that of @wanted."""
    return np.linalg.norm((found - wanted).astype(np.float64)) / np.linalg.norm(wanted.astype(np.float64))


def is_right(found, wanted):
    return deviation(found, wanted) <= GRADIENT  # False of NaN


class Adam:
    """Kingma and Ba 2014, in f64."""

    def __init__(self):
        self.t, self.m, self.v = 0, {}, {}

    def step(self, arrays, gradients):
        self.t += 1
        made = {}
        for name, gradient in gradients.items():
            gradient = gradient.astype(np.float64)
            self.m[name] = BETA1 * self.m.get(name, 0) + (1 - BETA1) * gradient
            self.v[name] = BETA2 * self.v.get(name, 0) + (1 - BETA2) * gradient**2
            m, v = self.m[name] / (1 - BETA1**self.t), self.v[name] / (1 - BETA2**self.t)
            made[name] = arrays[name] - RATE * m / (np.sqrt(v) + EPS)
        return made


def test_training():
    images, labels = data()
    arrays = beginning()
    weights, wanted_adam, losses = place(arrays, DEVICE), Adam(), []
    optimizer = nn.optim.Adam(list(weights.values()), lr=RATE, b1=BETA1, b2=BETA2, eps=EPS)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss, gradients = gradients_of(weights, images[step], labels[step], DEVICE)
        wanted_loss, wanted = gradients_of(place(arrays, "CPU"), images[step], labels[step], "CPU")
        checks.true(abs(loss - wanted_loss) <= GRADIENT * abs(wanted_loss), f"step {step}: {loss}, {wanted_loss} on the CPU")
        for name, one in wanted.items():
            checks.true(is_right(gradients[name], one), f"step {step}: {name}: off by {deviation(gradients[name], one)}")
        optimizer.step()
        made = wanted_adam.step(arrays, gradients)
        arrays = {name: one.numpy() for name, one in weights.items()}
        for name, one in made.items():
            off = np.abs(arrays[name] - one)
            most = 3 * RATE * 32 * U + U * np.abs(one)
            checks.true((off <= most).all(), f"step {step}: {name}: Adam is off by {off.max()}")
        losses.append(loss)
    checks.true(losses[-1] < losses[0], f"it learns: {losses}")


def test_a_wrong_gradient_fails():
    images, labels = data()
    wanted = gradients_of(place(beginning(), "CPU"), images[0], labels[0], "CPU")[1]
    for name, one in wanted.items():
        middle = np.unravel_index(np.argsort(np.abs(one), axis=None)[one.size // 2], one.shape)
        missing, turned = one.copy(), one.copy()
        missing[middle], turned[middle] = 0, -one[middle]
        checks.true(is_right(one, one) and not is_right(one * np.float32(1.01), one), name)
        checks.true(not is_right(one * np.nan, one) and not is_right(np.roll(one, 1), one), name)
        checks.equal([is_right(missing, one), is_right(turned, one)], [False, False])


checks.run(globals())
