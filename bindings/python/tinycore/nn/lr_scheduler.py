# SPDX-License-Identifier: MIT
"""Learning rates that change from step to step, as PyTorch has them."""
from __future__ import annotations

from bisect import bisect_right
from functools import wraps
from operator import index
from typing import Any

from ..convert import as_float, as_int
from ..errors import call, explain_making, explained, heard_number, wants_function
from ..library import Tiny


def base_rates(optimizer) -> list[float]:
    """The rates of an optimiser's groups when their first schedule was made that goes by steps."""
    if not hasattr(optimizer, "param_groups"):
        raise AttributeError(f"'{type(optimizer).__name__}' object has no attribute 'handle'")
    rates = vars(optimizer).setdefault("base_lrs", [])
    rates.extend(group["lr"] for group in optimizer.param_groups[len(rates):])
    return rates


def from_the_start(make):
    """@make, which takes PyTorch's last_epoch, of which there is one, and verbose, which prints nothing."""
    @wraps(make)
    def function(*arguments, last_epoch=-1, verbose=False, **more):
        if last_epoch not in (-1, None):
            raise NotImplementedError("last_epoch: a schedule begins at the start: load_state_dict() goes on")
        make(*arguments, **more)
    return function


class Scheduler:
    """Changes the learning rates of an optimiser at each step()."""

    optimizer: Any

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        if "__init__" in vars(cls) and cls.__module__ == __name__:
            cls.__init__ = from_the_start(cls.__init__)
        explain_making(cls)

    def take(self, make, optimizer, *settings):
        self.optimizer = optimizer
        self.made_with = make, settings
        self.note_rates()
        self.begin()

    def note_rates(self):
        """Schedules that follow start from the rates that there are now, unless one noted its own before."""
        base_rates(self.optimizer)

    def begin(self):
        """At its first step."""
        make, settings = self.made_with
        self.handle = call(make, self.optimizer.handle, *settings)

    def begin_again(self):
        """At its first step, from the rates that there were before all schedules."""
        for group, rate in zip(self.optimizer.param_groups, base_rates(self.optimizer)):
            group["lr"] = rate
        self.begin()

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
        self.take(Tiny.lambda_lr_new, optimizer, heard_number(lambda epoch, *_: lr_lambda(epoch)))


class Calculated(Scheduler):
    """A schedule that is calculated here: put() sets what the groups have at self.epoch, 0 at the start."""

    epoch = 0

    def put(self):
        raise NotImplementedError(f"{type(self).__name__} has no put()")

    def begin(self):
        self.epoch = 0
        self.put()
        base_rates(self.optimizer)

    @explained
    def step(self, epoch: int = None):
        if epoch is not None:
            raise NotImplementedError("step() goes to the next epoch, not to any")
        self.epoch += 1
        self.put()

    @property
    def last_epoch(self) -> int:
        return self.epoch

    def repeat(self, state):
        self.epoch = as_int(state["last_epoch"], "load_state_dict: last_epoch")
        self.put()

    def for_groups(self, name, value) -> list[Any]:
        """@value for each group: it is one for all, or a list."""
        n = len(self.optimizer.param_groups)
        values = list(value) if isinstance(value, (list, tuple)) else [value] * n
        if len(values) != n:
            raise ValueError(f"{type(self).__name__}: {name}: one for all groups or one for each of {n} is wanted, not {len(values)}")
        return values


class MultiplicativeLR(Calculated):
    """Times what a function, or one for each group, gives for the number of the epoch, at every step."""

    def __init__(self, optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]]):
        self.optimizer = optimizer
        self.functions = self.for_groups("lr_lambda", lr_lambda)
        for one in self.functions:
            wants_function(one, "MultiplicativeLR: lr_lambda")
        self.begin()

    def begin_again(self):
        self.begin()  # it has no rates of its own

    def put(self):
        for group, function in zip(self.optimizer.param_groups, self.functions):
            if self.epoch > 0:
                group["lr"] *= float(function(self.epoch))


class CyclicLR(Calculated):
    """Up from @base_lr to @max_lr in @step_size_up steps and down in @step_size_down, again and again (Smith 2017); momenta, or the first of betas, the
    other way round. @mode: "triangular", "triangular2", each cycle half as high, or "exp_range", times @gamma at every step; or else @scale_fn of the
    number of the cycle, or of the step if @scale_mode is "iterations"."""

    def __init__(self, optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float], step_size_up=2000, step_size_down: int = None,
                 mode="triangular", gamma=1.0, scale_fn: Callable[[float], float] = None, scale_mode="cycle", cycle_momentum=True,
                 base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9):
        scales = {"triangular": ("cycle", lambda x: 1.0), "triangular2": ("cycle", lambda x: 0.5 ** (x - 1)), "exp_range": ("iterations", lambda x: gamma ** x)}
        if scale_fn is None and mode not in scales or scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR: mode is one of {', '.join(scales)}, scale_mode cycle or iterations, not {mode!r:.60} and {scale_mode!r:.60}")
        if scale_fn is not None:
            wants_function(scale_fn, "CyclicLR: scale_fn")
        self.scale_mode, self.scale_fn = scales[mode] if scale_fn is None else (scale_mode, scale_fn)
        self.optimizer, self.gamma = optimizer, as_float(gamma, "CyclicLR: gamma")
        up = as_int(step_size_up, "CyclicLR: step_size_up")
        down = up if step_size_down is None else as_int(step_size_down, "CyclicLR: step_size_down")
        if up < 1 or down < 1:
            raise ValueError(f"CyclicLR: step_size_up and step_size_down are steps, from 1 on, not {up} and {down}")
        self.total, self.rising = up + down, up / (up + down)
        bounds = {"base_lr": base_lr, "max_lr": max_lr, **({"base_momentum": base_momentum, "max_momentum": max_momentum} if cycle_momentum else {})}
        self.bounds = {name: [as_float(one, f"CyclicLR: {name}") for one in self.for_groups(name, value)] for name, value in bounds.items()}
        if cycle_momentum and not all("momentum" in group or "betas" in group for group in optimizer.param_groups):
            raise ValueError("CyclicLR: cycle_momentum: the optimizer has no momentum")
        self.begin()

    def put(self):
        cycle = 1 + self.epoch // self.total
        part = self.epoch % self.total / self.total
        height = part / self.rising if part <= self.rising else (part - 1) / (self.rising - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.epoch)
        for group, low, high in zip(self.optimizer.param_groups, self.bounds["base_lr"], self.bounds["max_lr"]):
            group["lr"] = low + (high - low) * height
        for i, (low, high) in enumerate(zip(self.bounds.get("base_momentum", ()), self.bounds.get("max_momentum", ()))):
            call(self.optimizer.handle.set_group_momentum, i, high - (high - low) * height)


class ReduceLROnPlateau(Scheduler):
    """Times @factor when a metric has not become better for @patience steps."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0,
                 min_lr=0.0):
        self.metrics = []
        if mode not in ("min", "max") or threshold_mode != "rel":
            raise ValueError("ReduceLROnPlateau: mode is min or max, threshold_mode is rel")
        self.take(Tiny.reduce_lr_on_plateau_new, optimizer, mode == "max", factor, index(patience), threshold, index(cooldown),
                  min_lr)

    def note_rates(self):
        """Nothing: it goes by no steps, and schedules that follow start from the rates that it left."""

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


class Composed(Calculated):
    """A schedule made of others, which change the rates."""

    def __init__(self, name: str, schedulers: Sequence[Scheduler], optimizer):
        self.schedulers = list(schedulers)
        if not self.schedulers:
            raise ValueError(f"{name}: schedulers: at least one is wanted")
        for one in self.schedulers:
            if not isinstance(one, Scheduler) or isinstance(one, ReduceLROnPlateau):
                raise TypeError(f"{name}: schedulers: learning rates that go by steps are wanted, not {one!r:.60}")
        self.optimizer = self.schedulers[0].optimizer if optimizer is None else optimizer
        if any(one.optimizer is not self.optimizer for one in self.schedulers):
            raise ValueError(f"{name}: schedulers: all are wanted to be of one optimizer")

    def repeat(self, state):
        for _ in range(as_int(state["last_epoch"], "load_state_dict: last_epoch")):
            self.step()


class SequentialLR(Composed):
    """One schedule after the other, changing at milestones."""

    def __init__(self, optimizer, schedulers: Sequence[Scheduler], milestones: Sequence[int]):
        super().__init__("SequentialLR", schedulers, optimizer)
        self.milestones = [as_int(one, "SequentialLR: milestones") for one in milestones]
        if len(self.milestones) + 1 != len(self.schedulers) or sorted(self.milestones) != self.milestones:
            raise ValueError(f"SequentialLR: milestones: {len(self.schedulers) - 1} steps in ascending order are wanted, where the next of "
                             f"{len(self.schedulers)} schedulers begins, not {self.milestones}")
        self.begin()

    def put(self):
        now = self.schedulers[bisect_right(self.milestones, self.epoch)]
        if self.epoch == 0:  # the others have put theirs as they were made
            for group, rate in zip(self.optimizer.param_groups, base_rates(self.optimizer)):
                group["lr"] = rate
        if self.epoch in (0, *self.milestones):
            now.begin_again()
        else:
            now.step()


class ChainedScheduler(Composed):
    """Several schedules at once."""

    def __init__(self, schedulers: Sequence[Scheduler], optimizer=None):
        super().__init__("ChainedScheduler", schedulers, optimizer)

    def begin(self):
        super().begin()
        for one in self.schedulers:
            one.begin()

    def put(self):
        for one in self.schedulers if self.epoch > 0 else ():
            one.step()
