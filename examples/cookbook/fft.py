# SPDX-License-Identifier: MIT
"""The frequencies in a signal. Complex numbers are two on a last axis."""
from math import pi

from tinycore import Tensor

t = Tensor.arange(64) / 64
signal = (2 * pi * 5 * t).sin() + 0.5 * (2 * pi * 12 * t).cos()
strength = signal.rfft().square().sum(-1).sqrt() / 32
print(strength.topk(2)[1].tolist(), [f"{value:.2f}" for value in strength.topk(2)[0].tolist()])
print(((signal.rfft().irfft() - signal).abs().max() < 1e-5).item())
