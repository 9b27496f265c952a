# SPDX-License-Identifier: MIT
"""LBFGS: steps by an estimate of the inverse Hessian from the last changes of gradients (Liu and Nocedal 1989).

All parameters are one vector. What decides, losses and slopes, is on the host: a step asks for the loss as often as it has to, by
a function of the program, and is no part of a recording."""
from __future__ import annotations

from math import isfinite, sqrt

from ..convert import as_float, as_int
from ..errors import explain_making, wants_function
from ..tensor import Tensor
from .optim import trainable
from .utils import parameters_to_vector, vector_to_parameters


def cubic(x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two values and slopes is least, inside of the bounds (Nocedal and Wright 2006, 3.59)."""
    low, high = bounds or (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2
    d2 = sqrt(square)
    place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2)) if x1 <= x2 else x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


class LBFGS:
    """Changes parameters along gradients that are turned by an estimate of the inverse Hessian. One group.

    @max_iter, @max_eval: iterations and losses of one step() at most; @history_size: how many changes are remembered
    @tolerance_grad, @tolerance_change: below which nothing is worth another iteration
    @line_search_fn: None, steps of @lr, or "strong_wolfe\""""

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        explain_making(cls)

    def __init__(self, params, lr: float = 1, max_iter: int = 20, max_eval: int = None, tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9,
                 history_size: int = 100, line_search_fn: str = None):
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn: None or strong_wolfe is wanted, not {line_search_fn!r:.60}")
        self.params = trainable(params)
        if not self.params:
            raise ValueError("LBFGS: params: tensors of floats are wanted, which alone are changed")
        max_iter = as_int(max_iter, "LBFGS: max_iter")
        self.param_groups: list[dict[str, Any]] = [{
            "params": self.params, "lr": as_float(lr, "LBFGS: lr"), "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else as_int(max_eval, "LBFGS: max_eval"),
            "tolerance_grad": as_float(tolerance_grad, "LBFGS: tolerance_grad"), "tolerance_change": as_float(tolerance_change, "LBFGS: tolerance_change"),
            "history_size": as_int(history_size, "LBFGS: history_size"), "line_search_fn": line_search_fn}]
        self.forget()

    def forget(self):
        """Begins anew."""
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []  # changes of gradients and parameters, and 1 / their product
        self.scale, self.direction, self.last, self.rate, self.n_iter = 1.0, None, None, 0.0, 0

    def zero_grad(self, set_to_none=True):
        for one in self.params:
            one.grad = None

    KEPT = ("pairs", "scale", "direction", "last", "rate", "n_iter")

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict() goes on from."""
        settings = {name: one for name, one in self.param_groups[0].items() if name != "params"}
        return {"state": {name: getattr(self, name) for name in self.KEPT}, "param_groups": [settings]}

    def load_state_dict(self, state_dict):
        self.param_groups[0].update(state_dict["param_groups"][0])
        for name in self.KEPT:
            setattr(self, name, state_dict["state"][name])

    def gradient(self) -> Tensor:
        return parameters_to_vector([one.zeros_like() if one.grad is None else one.grad for one in self.params]).detach().realize()

    def at(self, start: Tensor, rate: float, closure: Callable[[], Tensor]) -> tuple[float, Tensor, float]:
        """The loss, gradient and slope at @rate times the direction from @start."""
        vector_to_parameters(start + self.direction * rate, self.params)
        loss = float(closure())
        gradient = self.gradient()
        return loss, gradient, gradient.dot(self.direction).item()

    def turn(self, gradient: Tensor):
        """The next direction."""
        if self.last is not None:
            change, way = gradient - self.last, self.direction * self.rate
            product = change.dot(way).item()
            if product > 1e-10:
                weight = Tensor(1 / product, dtype=change.dtype, device=change.device)
                self.pairs = [*self.pairs, (change.realize(), way.realize(), weight.realize())][-self.param_groups[0]["history_size"]:]
                self.scale = product / change.dot(change).item()
        q, parts = (-gradient).realize(), []
        for change, way, weight in reversed(self.pairs):  # realised pair by pair: the same kernels for any number of them
            parts.append(way.dot(q) * weight)
            q = (q - change * parts[-1]).realize(parts[-1])
        q = (q * self.scale).realize()
        for (change, way, weight), part in zip(self.pairs, reversed(parts)):
            q = (q + way * (part - change.dot(q) * weight)).realize()
        self.direction, self.last = q, gradient

    def step(self, closure: Callable[[], Tensor]) -> Any:
        """Iterations; @closure clears gradients, computes the loss and its gradients, and gives the loss. The first loss is the result."""
        wants_function(closure, "LBFGS: closure")
        group = self.param_groups[0]
        first = closure()
        loss, gradient, n_losses = float(first), self.gradient(), 1
        for i in range(group["max_iter"]):
            if gradient.abs().max().item() <= group["tolerance_grad"]:
                break
            self.n_iter += 1
            self.turn(gradient)
            self.rate = group["lr"] * (min(1.0, 1 / gradient.abs().sum().item()) if self.n_iter == 1 else 1)
            slope, before = gradient.dot(self.direction).item(), loss
            if slope > -group["tolerance_change"]:
                break
            start = parameters_to_vector(self.params).detach().realize()
            if group["line_search_fn"] is not None:
                self.rate, loss, gradient, n = self.search(start, closure, (loss, gradient, slope), group["tolerance_change"])
                vector_to_parameters(start + self.direction * self.rate, self.params)
            elif i + 1 < group["max_iter"]:
                loss, gradient, _ = self.at(start, self.rate, closure)
                n = 1
            else:
                vector_to_parameters(start + self.direction * self.rate, self.params)
                break
            n_losses += n
            if (n_losses >= group["max_eval"] or self.direction.abs().max().item() * self.rate <= group["tolerance_change"]
                    or abs(loss - before) < group["tolerance_change"] or not isfinite(loss)):
                break
        return first

    def search(self, start: Tensor, closure: Callable[[], Tensor], origin: tuple[float, Tensor, float],
               tolerance: float) -> tuple[float, float, Tensor, int]:
        """A rate at which the strong Wolfe conditions hold (Nocedal and Wright 2006, 3.5 and 3.6), with its loss and gradient, and how many were tried."""
        loss0, _, slope0 = origin
        last, rate, n = (0.0, *origin), self.rate, 0
        ends = None
        while n < 25:
            now = (rate, *self.at(start, rate, closure))
            n += 1
            if now[1] > loss0 + 1e-4 * rate * slope0 or n > 1 and now[1] >= last[1]:
                ends = [last, now]
                break
            if abs(now[3]) <= -0.9 * slope0:
                return now[0], now[1], now[2], n
            if now[3] >= 0:
                ends = [last, now]
                break
            bounds = (rate + 0.01 * (rate - last[0]), rate * 10)
            last, rate = now, cubic(last[0], last[1], last[3], rate, now[1], now[3], bounds)
        if ends is None:
            ends = [(0.0, *origin), last]
        low, high = sorted(ends, key=lambda one: one[1])
        stuck, size = False, self.direction.abs().max().item()
        while n < 25 and abs(high[0] - low[0]) * size >= tolerance:
            rate = cubic(ends[0][0], ends[0][1], ends[0][3], ends[1][0], ends[1][1], ends[1][3])
            least, most = sorted((ends[0][0], ends[1][0]))
            margin = 0.1 * (most - least)
            if min(most - rate, rate - least) < margin:
                if stuck or rate >= most or rate <= least:
                    rate, stuck = most - margin if abs(rate - most) < abs(rate - least) else least + margin, False
                else:
                    stuck = True
            else:
                stuck = False
            now = (rate, *self.at(start, rate, closure))
            n += 1
            if now[1] > loss0 + 1e-4 * rate * slope0 or now[1] >= low[1]:
                high = now
            else:
                if abs(now[3]) <= -0.9 * slope0:
                    return now[0], now[1], now[2], n
                if now[3] * (high[0] - low[0]) >= 0:
                    high = low
                low = now
            if high[1] < low[1]:
                low, high = high, low
            ends = [low, high]
        return low[0], low[1], low[2], n
