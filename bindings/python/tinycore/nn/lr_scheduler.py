# SPDX-License-Identifier: MIT
"""Learning rates that change from step to step, as PyTorch has them."""
from operator import index

from ..errors import call
from ..library import Tiny


class Scheduler:
    """Changes the learning rate of an optimiser at each step()."""

    def take(self, make, optimizer, *settings):
        self.optimizer = optimizer
        self.handle = call(make, optimizer.handle, *settings)

    def step(self):
        call(self.handle.step)

    def get_last_lr(self):
        return [self.optimizer.lr]


class StepLR(Scheduler):
    """Times @gamma every @step_size steps."""

    def __init__(self, optimizer, step_size, gamma=0.1):
        self.take(Tiny.step_lr_new, optimizer, index(step_size), gamma)


class MultiStepLR(Scheduler):
    """Times @gamma at each of @milestones."""

    def __init__(self, optimizer, milestones, gamma=0.1):
        self.take(Tiny.multi_step_lr_new, optimizer, list(milestones), gamma)


class ExponentialLR(Scheduler):
    """Times @gamma at every step."""

    def __init__(self, optimizer, gamma):
        self.take(Tiny.exponential_lr_new, optimizer, gamma)


class ConstantLR(Scheduler):
    """Times @factor for the first steps."""

    def __init__(self, optimizer, factor=1 / 3, total_iters=5):
        self.take(Tiny.constant_lr_new, optimizer, factor, index(total_iters))


class LinearLR(Scheduler):
    """From one factor to another in equal steps."""

    def __init__(self, optimizer, start_factor=1 / 3, end_factor=1.0, total_iters=5):
        self.take(Tiny.linear_lr_new, optimizer, start_factor, end_factor, index(total_iters))


class PolynomialLR(Scheduler):
    """To 0 by a power."""

    def __init__(self, optimizer, total_iters=5, power=1.0):
        self.take(Tiny.polynomial_lr_new, optimizer, index(total_iters), power)


class CosineAnnealingLR(Scheduler):
    """To @eta_min and back along a cosine."""

    def __init__(self, optimizer, T_max, eta_min=0.0):
        self.take(Tiny.cosine_annealing_lr_new, optimizer, index(T_max), eta_min)
