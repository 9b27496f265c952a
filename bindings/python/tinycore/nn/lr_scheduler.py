# SPDX-License-Identifier: MIT
"""Learning rates that change from step to step, as PyTorch has them."""
from __future__ import annotations

from operator import index
from typing import Any

from ..convert import as_int
from ..errors import call, explain_making, explained
from ..library import Tiny


class Scheduler:
    """Changes the learning rates of an optimiser at each step()."""

    optimizer: Any

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        explain_making(cls)

    def take(self, make, optimizer, *settings):
        self.optimizer = optimizer
        self.made_with = make, settings
        self.begin()

    def begin(self):
        """At its first step."""
        make, settings = self.made_with
        self.handle = call(make, self.optimizer.handle, *settings)

    def step(self, epoch: int = None):
        if epoch is not None:
            raise NotImplementedError("step() goes to the next epoch, not to any")
        call(self.handle.step)

    def __reduce__(self):
        raise TypeError(f"{type(self).__name__} cannot be copied or pickled: make another for the copied optimizer, and give its "
                        "load_state_dict() this one's state_dict()")

    @property
    def last_epoch(self) -> int:
        return self.handle.get_epoch()

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict() goes on from: how many steps there were, and the rates."""
        return {"last_epoch": self.last_epoch, "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state_dict):
        """Goes on from where another of the same settings stopped, with the same optimiser's state or one that was loaded."""
        rates = state_dict.get("_last_lr") or self.get_last_lr()
        self.begin()
        self.repeat(state_dict)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def repeat(self, state):
        """The steps that there were: a rate may follow from the one before."""
        for _ in range(as_int(state["last_epoch"], "load_state_dict: last_epoch")):
            call(self.handle.step)

    def get_last_lr(self) -> list[float]:
        """The rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]


LRScheduler = Scheduler


class StepLR(Scheduler):
    """Times @gamma every @step_size steps."""

    def __init__(self, optimizer, step_size: int, gamma=0.1):
        self.take(Tiny.step_lr_new, optimizer, index(step_size), gamma)


class MultiStepLR(Scheduler):
    """Times @gamma at each of @milestones."""

    def __init__(self, optimizer, milestones: Sequence[int], gamma=0.1):
        self.take(Tiny.multi_step_lr_new, optimizer, list(milestones), gamma)


class ExponentialLR(Scheduler):
    """Times @gamma at every step."""

    def __init__(self, optimizer, gamma: float):
        self.take(Tiny.exponential_lr_new, optimizer, gamma)


class ConstantLR(Scheduler):
    """Times @factor for the first steps."""

    def __init__(self, optimizer, factor: float = 1 / 3, total_iters=5):
        self.take(Tiny.constant_lr_new, optimizer, factor, index(total_iters))


class LinearLR(Scheduler):
    """From one factor to another in equal steps."""

    def __init__(self, optimizer, start_factor: float = 1 / 3, end_factor=1.0, total_iters=5):
        self.take(Tiny.linear_lr_new, optimizer, start_factor, end_factor, index(total_iters))


class PolynomialLR(Scheduler):
    """To 0 by a power."""

    def __init__(self, optimizer, total_iters=5, power=1.0):
        self.take(Tiny.polynomial_lr_new, optimizer, index(total_iters), power)


class CosineAnnealingLR(Scheduler):
    """To @eta_min and back along a cosine."""

    def __init__(self, optimizer, T_max: int, eta_min=0.0):
        self.take(Tiny.cosine_annealing_lr_new, optimizer, index(T_max), eta_min)


class CosineAnnealingWarmRestarts(Scheduler):
    """To @eta_min along a cosine, again and again, each time @T_mult times as slowly."""

    def __init__(self, optimizer, T_0: int, T_mult=1, eta_min=0.0):
        self.take(Tiny.cosine_annealing_warm_restarts_new, optimizer, index(T_0), index(T_mult), eta_min)


class OneCycleLR(Scheduler):
    """Up to @max_lr and down again along cosines; momenta, or the first of betas, from @max_momentum to @base_momentum and back."""

    def __init__(self, optimizer, max_lr: float, total_steps: int = None, epochs: int = None, steps_per_epoch: int = None, pct_start=0.3,
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
        self.momenta = (base_momentum, max_momentum) if cycle_momentum else None
        self.take(Tiny.one_cycle_lr_new, optimizer, max_lr, total, pct_start, div_factor, final_div_factor)

    def begin(self):
        super().begin()
        if self.momenta is not None:
            call(self.handle.cycle_momentum, *self.momenta)


class LambdaLR(Scheduler):
    """Times what a function gives for the number of the epoch."""

    def __init__(self, optimizer, lr_lambda: Callable[[int], float]):
        if not callable(lr_lambda):
            raise NotImplementedError("LambdaLR: one function for all groups")
        self.take(Tiny.lambda_lr_new, optimizer, lambda epoch, *_: float(lr_lambda(epoch)))


class ReduceLROnPlateau(Scheduler):
    """Times @factor when a metric has not become better for @patience steps."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0,
                 min_lr=0.0):
        self.metrics = []
        if mode not in ("min", "max") or threshold_mode != "rel":
            raise ValueError("ReduceLROnPlateau: mode is min or max, threshold_mode is rel")
        self.take(Tiny.reduce_lr_on_plateau_new, optimizer, mode == "max", factor, index(patience), threshold, index(cooldown),
                  min_lr)

    @explained
    def step(self, metrics: Any):
        self.metrics.append(float(metrics))
        call(self.handle.step_metric, self.metrics[-1])

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "metrics": list(self.metrics)}

    def repeat(self, state):
        self.metrics = []
        for one in state["metrics"]:
            self.step(one)


class SequentialLR(Scheduler):
    """One schedule after the other, changing at milestones."""

    def __init__(self, optimizer, schedulers: Sequence[Scheduler], milestones: Sequence[int]):
        self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.handle = call(Tiny.sequential_lr_new, [one.handle for one in self.schedulers], self.milestones)

    def begin(self):
        for one in self.schedulers:
            one.begin()
        self.handle = call(Tiny.sequential_lr_new, [one.handle for one in self.schedulers], self.milestones)


class ChainedScheduler(Scheduler):
    """Several schedules at once."""

    def __init__(self, schedulers: Sequence[Scheduler], optimizer=None):
        self.schedulers = list(schedulers)
        if not self.schedulers:
            raise ValueError("ChainedScheduler: schedulers: at least one is wanted")
        self.optimizer = self.schedulers[0].optimizer
        self.handle = call(Tiny.chained_scheduler_new, [one.handle for one in self.schedulers])

    def begin(self):
        for one in self.schedulers:
            one.begin()
        self.handle = call(Tiny.chained_scheduler_new, [one.handle for one in self.schedulers])
