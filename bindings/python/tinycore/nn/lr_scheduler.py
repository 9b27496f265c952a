# SPDX-License-Identifier: MIT
"""Learning rates that change from step to step, as PyTorch has them."""
from operator import index

from ..convert import as_int
from ..errors import call, explain_making, explained
from ..library import Tiny


class Scheduler:
    """Changes the learning rates of an optimiser at each step()."""

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        explain_making(cls)

    def take(self, make, optimizer, *settings):
        self.optimizer = optimizer
        self.handle = call(make, optimizer.handle, *settings)

    def step(self, epoch=None):
        if epoch is not None:
            raise NotImplementedError("step() goes to the next epoch, not to any")
        call(self.handle.step)

    def __reduce__(self):
        raise TypeError(f"{type(self).__name__} cannot be copied or pickled: make another for the copied optimizer, and call its "
                        "step() as often as last_epoch says")

    @property
    def last_epoch(self):
        return self.handle.get_epoch()

    def get_last_lr(self):
        """The rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]


LRScheduler = Scheduler


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


class CosineAnnealingWarmRestarts(Scheduler):
    """To @eta_min along a cosine, again and again, each time @T_mult times as slowly."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0):
        self.take(Tiny.cosine_annealing_warm_restarts_new, optimizer, index(T_0), index(T_mult), eta_min)


class OneCycleLR(Scheduler):
    """Up to @max_lr and down again along cosines; momenta, or the first of betas, from @max_momentum to @base_momentum and back."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False):
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("OneCycleLR: total_steps, or epochs and steps_per_epoch, have to be given")
        if anneal_strategy != "cos" or three_phase:
            raise NotImplementedError("OneCycleLR: along two cosines only: anneal_strategy=\"cos\", three_phase=False")
        if any(isinstance(one, (list, tuple)) for one in (max_lr, base_momentum, max_momentum)):
            raise NotImplementedError("OneCycleLR: max_lr, base_momentum and max_momentum are one number for all groups")
        total = (as_int(total_steps, "OneCycleLR: total_steps") if total_steps is not None else
                 as_int(epochs, "OneCycleLR: epochs") * as_int(steps_per_epoch, "OneCycleLR: steps_per_epoch"))
        self.take(Tiny.one_cycle_lr_new, optimizer, max_lr, total, pct_start, div_factor, final_div_factor)
        if cycle_momentum:
            call(self.handle.cycle_momentum, base_momentum, max_momentum)


class LambdaLR(Scheduler):
    """Times what a function gives for the number of the epoch."""

    def __init__(self, optimizer, lr_lambda):
        if not callable(lr_lambda):
            raise NotImplementedError("LambdaLR: one function for all groups")
        self.take(Tiny.lambda_lr_new, optimizer, lambda epoch, *_: float(lr_lambda(epoch)))


class ReduceLROnPlateau(Scheduler):
    """Times @factor when a metric has not become better for @patience steps."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0,
                 min_lr=0.0):
        if mode not in ("min", "max") or threshold_mode != "rel":
            raise ValueError("ReduceLROnPlateau: mode is min or max, threshold_mode is rel")
        self.take(Tiny.reduce_lr_on_plateau_new, optimizer, mode == "max", factor, index(patience), threshold, index(cooldown),
                  min_lr)

    @explained
    def step(self, metrics):
        call(self.handle.step_metric, float(metrics))


class SequentialLR(Scheduler):
    """One schedule after the other, changing at milestones."""

    def __init__(self, optimizer, schedulers, milestones):
        self.optimizer, self.schedulers = optimizer, list(schedulers)
        self.handle = call(Tiny.sequential_lr_new, [one.handle for one in schedulers], list(milestones))


class ChainedScheduler(Scheduler):
    """Several schedules at once."""

    def __init__(self, schedulers, optimizer=None):
        self.schedulers = list(schedulers)
        if not self.schedulers:
            raise ValueError("ChainedScheduler: schedulers: at least one is wanted")
        self.optimizer = self.schedulers[0].optimizer
        self.handle = call(Tiny.chained_scheduler_new, [one.handle for one in self.schedulers])
