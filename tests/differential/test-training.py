#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Optimisers, step by step, and learning rates against PyTorch's, or their published formulas in NumPy; gradients that
are clipped and scaled.

usage: test-training.py [NAME…]. Run in the build's environment."""
import sys

import nn_reference as reference
from nn_reference import GLib, Tiny, np, random, torch

SHAPES = [(4, 3), (3,), (2, 3, 2), (5, 2)]


def tiny_loss(parameters, factors, tiny=True):
    """Σ c p² + Σ d p, whose gradient is 2 c p + d."""
    total = None
    for p, (c, d) in zip(parameters, factors):
        if tiny:
            part = p.mul(p).mul(reference.to_tiny(c)).add(p.mul(reference.to_tiny(d))).sum(list(range(c.ndim)), False)
            total = part if total is None else total.add(part)
        else:
            part = (p * p * torch.tensor(c) + p * torch.tensor(d)).sum()
            total = part if total is None else total + part
    return total


def variable(value):
    tensor = reference.to_tiny(value)
    tensor.set_requires_grad(True)
    return tensor


def check_steps(name, make, step, rates=(None,) * 6, starts=None):
    """@make of our parameters gives an optimiser; @step (arrays, gradients, rate) is what it has to do."""
    starts = [random(shape) for shape in SHAPES] if starts is None else starts
    mine = [variable(start) for start in starts]
    optimizer = make(mine)
    arrays = [start.astype(np.float64) for start in starts]
    for i, rate in enumerate(rates):
        factors = [(random(a.shape), random(a.shape)) for a in arrays]
        if rate is not None:
            optimizer.set_lr(rate)
        optimizer.zero_grad()
        tiny_loss(mine, factors).backward()
        optimizer.step([])
        step(arrays, [2 * c.astype(np.float64) * a + d for a, (c, d) in zip(arrays, factors)], rate)
        for k, (p, a) in enumerate(zip(mine, arrays)):
            reference.close(f"{name}: parameter {k} after step {i + 1}", p, a.astype(np.float32), 2e-5, 2e-6)
            assert p.get_grad() is not None


def by_torch(make):
    """A step of PyTorch's optimiser, on f64."""
    state = {}

    def step(arrays, gradients, rate):
        if not state:
            state["p"] = [torch.nn.Parameter(torch.tensor(a)) for a in arrays]
            state["o"] = make(state["p"])
        for p, gradient in zip(state["p"], gradients):
            p.grad = torch.tensor(gradient)
        for group in state["o"].param_groups if rate is not None else []:
            group["lr"] = rate
        state["o"].step()
        for a, p in zip(arrays, state["p"]):
            a[...] = p.detach().numpy()
    return step


def check_against_torch():
    rates = (None, None, 0.02, 0.02, 0.005, None)
    for momentum, dampening, decay, nesterov in ((0, 0, 0, False), (0.9, 0, 0, False), (0.9, 0, 0.1, True),
                                                 (0.8, 0.3, 0.05, False), (0, 0, 0.1, False)):
        def make(parameters):
            ours = Tiny.sgd_new(parameters, 0.05, momentum, decay, nesterov)
            if dampening:
                ours.set_setting(0, "dampening", dampening)
            return ours
        check_steps("sgd", make, by_torch(lambda p: torch.optim.SGD(p, 0.05, momentum, dampening, decay, nesterov)), rates)
    for decay in (0, 0.1):
        check_steps("adam", lambda p: Tiny.adam_new(p, 0.05, 0.9, 0.99, 1e-8, decay),
                    by_torch(lambda p: torch.optim.Adam(p, 0.05, (0.9, 0.99), 1e-8, decay)), rates)
        check_steps("adamw", lambda p: Tiny.adamw_new(p, 0.05, 0.8, 0.999, 1e-6, decay),
                    by_torch(lambda p: torch.optim.AdamW(p, 0.05, (0.8, 0.999), 1e-6, decay)), rates)


def groups_by_torch(p):
    return torch.optim.AdamW([{"params": p[:2], "lr": 0.05, "weight_decay": 0.1}, {"params": p[2:], "lr": 0.01, "weight_decay": 0}])


def check_groups():
    def make(parameters):
        ours = Tiny.adamw_new(parameters[:2], 0.05, 0.9, 0.999, 1e-8, 0.1)
        ours.add_group(parameters[2:], 0.01, 0)
        assert ours.get_n_groups() == 2 and ours.get_group_lr(1) == 0.01
        return ours
    check_steps("groups", make, by_torch(groups_by_torch))

    def make_other(parameters):
        ours = Tiny.adamw_new(parameters[:2], 0.05, 0.9, 0.999, 1e-8, 0.1)
        ours.add_group(parameters[2:], 0.01, 0)
        assert ours.list_settings() == ["lr", "weight_decay", "beta1", "beta2", "eps", "maximize", "amsgrad"]
        for name, value in (("beta1", 0.5), ("beta2", 0.8), ("eps", 1e-3), ("weight_decay", 0.2)):
            ours.set_setting(1, name, value)
        assert [ours.get_setting(k, "beta1")[1] for k in range(2)] == [0.9, 0.5]
        return ours
    check_steps("groups-settings", make_other, by_torch(lambda p: torch.optim.AdamW(
        [{"params": p[:2], "lr": 0.05, "weight_decay": 0.1},
         {"params": p[2:], "lr": 0.01, "weight_decay": 0.2, "betas": (0.5, 0.8), "eps": 1e-3}])))

    def make_momenta(parameters):
        ours = Tiny.sgd_new(parameters[:2], 0.05, 0, 0, False)
        ours.add_group(parameters[2:], 0.01, 0)
        ours.set_setting(1, "momentum", 0.9)
        ours.set_setting(1, "nesterov", 1)
        return ours
    check_steps("groups-momentum", make_momenta, by_torch(lambda p: torch.optim.SGD(
        [{"params": p[:2], "lr": 0.05}, {"params": p[2:], "lr": 0.01, "momentum": 0.9, "nesterov": True}], 0.1)))


def lamb(lr, b1, b2, eps, decay):
    state = {"t": 0}

    def step(arrays, gradients, rate):
        state["t"] += 1
        for i, (p, g) in enumerate(zip(arrays, gradients)):
            m, v = state.get(i, (0, 0))
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            state[i] = m, v
            u = m / (1 - b1 ** state["t"]) / (np.sqrt(v / (1 - b2 ** state["t"])) + eps) + decay * p
            norms = np.linalg.norm(p), np.linalg.norm(u)
            p -= (rate or lr) * (norms[0] / norms[1] if min(norms) > 0 else 1) * u
    return step


def lars(lr, momentum, decay, nesterov, trust):
    state = {}

    def step(arrays, gradients, rate):
        for i, (p, g) in enumerate(zip(arrays, gradients)):
            norms = np.linalg.norm(p), np.linalg.norm(g)
            ratio = trust * norms[0] / (norms[1] + decay * norms[0]) if min(norms) > 0 else 1
            g = (g + decay * p) * ratio * (rate or lr)
            if momentum:
                state[i] = momentum * state.get(i, 0) + g
                g = g + momentum * state[i] if nesterov else state[i]
            p -= g
    return step


def muon(lr, momentum, decay, n_steps, nesterov):
    state = {}

    def step(arrays, gradients, rate):
        for i, (p, g) in enumerate(zip(arrays, gradients)):
            if momentum:
                state[i] = momentum * state.get(i, 0) + g
                g = g + momentum * state[i] if nesterov else state[i]
            x = g.reshape(g.shape[0], -1)
            x = x / (np.linalg.norm(x) + 1e-7)
            x = x.T if x.shape[0] > x.shape[1] else x
            for _ in range(n_steps):
                a = x @ x.T
                x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
            x = x.T if g.shape[0] > g.size // g.shape[0] else x
            p -= (rate or lr) * (x.reshape(g.shape) + decay * p)
    return step


def check_against_formulas():
    zeros = [np.zeros(shape, np.float32) for shape in SHAPES]
    for decay in (0, 0.1):
        check_steps("lamb", lambda p: Tiny.lamb_new(p, 0.05, 0.9, 0.99, 1e-6, decay), lamb(0.05, 0.9, 0.99, 1e-6, decay),
                    (None, None, 0.02, 0.02))
        for nesterov in (False, True):
            check_steps("lars", lambda p: Tiny.lars_new(p, 0.5, 0.9, decay, nesterov, 0.01),
                        lars(0.5, 0.9, decay, nesterov, 0.01), (None, None, 0.2, 0.2))
            check_steps("muon", lambda p: Tiny.muon_new(p, 0.02, 0.95, decay, 5, nesterov),
                        muon(0.02, 0.95, decay, 5, nesterov), (None, None, 0.05))
    check_steps("lamb-zeros", lambda p: Tiny.lamb_new(p, 0.05, 0.9, 0.99, 1e-6, 0.1), lamb(0.05, 0.9, 0.99, 1e-6, 0.1),
                starts=zeros, rates=(None, None))
    check_steps("lars-zeros", lambda p: Tiny.lars_new(p, 0.5, 0, 0.1, False, 0.01), lars(0.5, 0, 0.1, False, 0.01),
                starts=zeros, rates=(None, None))


def check_resume():
    """An optimiser that goes on from another's state is where that one is."""
    starts = [random(shape) for shape in SHAPES]
    factors = [[(random(a.shape), random(a.shape)) for a in starts] for _ in range(4)]

    def run(parameters, optimizer, steps):
        for row in steps:
            optimizer.zero_grad()
            tiny_loss(parameters, row).backward()
            optimizer.step([])
    first = [variable(start) for start in starts]
    one = Tiny.adam_new(first, 0.05, 0.9, 0.99, 1e-8, 0)
    run(first, one, factors[:2])
    one.set_lr(0.02)
    second = [variable(reference.to_numpy(p).copy()) for p in first]
    two = Tiny.adam_new(second, 0.05, 0.9, 0.99, 1e-8, 0)
    two.load_state_dict(one.get_state_dict())
    assert abs(two.get_lr() - 0.02) < 1e-8
    run(first, one, factors[2:])
    run(second, two, factors[2:])
    for a, b in zip(first, second):
        assert (reference.to_numpy(a) == reference.to_numpy(b)).all()
    reference.raises("missing", Tiny.adam_new(first[:1], 0.05, 0.9, 0.99, 1e-8, 0).load_state_dict, {})


def check_schedules():
    lr = torch.optim.lr_scheduler
    p = variable(random((2,)))

    def rates(ours, make_tiny, make_torch, n=25, metrics=None):
        optimizer = Tiny.sgd_new([p], 0.1, 0, 0, False)
        optimizer.add_group([variable(random((2,)))], 0.5, 0)
        other = torch.optim.SGD([{"params": torch.nn.Parameter(torch.zeros(2)), "lr": rate} for rate in (0.1, 0.5)], 0.1)
        mine, theirs = make_tiny(optimizer), make_torch(other)
        for i in range(n):
            found = [optimizer.get_group_lr(k) for k in range(2)]
            expected = [group["lr"] for group in other.param_groups]
            assert np.allclose(found, expected, 1e-9, 1e-12), (ours, i, found, expected)
            if i + 1 == n:
                break
            if metrics is None:
                mine.step()
                other.step()
                theirs.step()
            else:
                mine.step_metric(metrics[i])
                theirs.step(metrics[i])
        assert mine.get_epoch() == n - 1

    rates("step", lambda o: Tiny.step_lr_new(o, 3, 0.5), lambda o: lr.StepLR(o, 3, 0.5))
    rates("multi", lambda o: Tiny.multi_step_lr_new(o, [2, 5, 5, 9], 0.5), lambda o: lr.MultiStepLR(o, [2, 5, 5, 9], 0.5))
    rates("exponential", lambda o: Tiny.exponential_lr_new(o, 0.9), lambda o: lr.ExponentialLR(o, 0.9))
    rates("constant", lambda o: Tiny.constant_lr_new(o, 0.25, 4), lambda o: lr.ConstantLR(o, 0.25, 4))
    rates("linear", lambda o: Tiny.linear_lr_new(o, 0.1, 1, 8), lambda o: lr.LinearLR(o, 0.1, 1, 8))
    rates("linear-down", lambda o: Tiny.linear_lr_new(o, 1, 0.1, 8), lambda o: lr.LinearLR(o, 1, 0.1, 8))
    rates("polynomial", lambda o: Tiny.polynomial_lr_new(o, 10, 2), lambda o: lr.PolynomialLR(o, 10, 2))
    rates("cosine", lambda o: Tiny.cosine_annealing_lr_new(o, 7, 0.01), lambda o: lr.CosineAnnealingLR(o, 7, 0.01))
    rates("restarts", lambda o: Tiny.cosine_annealing_warm_restarts_new(o, 3, 2, 0.01),
          lambda o: lr.CosineAnnealingWarmRestarts(o, 3, 2, 0.01))
    rates("one cycle", lambda o: Tiny.one_cycle_lr_new(o, 0.7, 25, 0.3, 25, 1e4),
          lambda o: lr.OneCycleLR(o, 0.7, 25, cycle_momentum=False))
    rates("lambda", lambda o: Tiny.lambda_lr_new(o, lambda epoch, *_: 1 / (1 + epoch)), lambda o: lr.LambdaLR(o, lambda e: 1 / (1 + e)))
    rates("chained", lambda o: Tiny.chained_scheduler_new([Tiny.constant_lr_new(o, 0.1, 3), Tiny.exponential_lr_new(o, 0.9),
                                                           Tiny.cosine_annealing_lr_new(o, 8, 0.001)]),
          lambda o: lr.ChainedScheduler([lr.ConstantLR(o, 0.1, 3), lr.ExponentialLR(o, 0.9), lr.CosineAnnealingLR(o, 8, 0.001)]))
    rates("sequential", lambda o: Tiny.sequential_lr_new([Tiny.linear_lr_new(o, 0.1, 1, 5), Tiny.step_lr_new(o, 4, 0.5),
                                                          Tiny.exponential_lr_new(o, 0.9)], [5, 15]),
          lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 0.1, 1, 5), lr.StepLR(o, 4, 0.5), lr.ExponentialLR(o, 0.9)], [5, 15]))
    metrics = [5, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, float("nan"), 3, 2.9999, 2.99995, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    for largest in (False, True):
        rates("plateau", lambda o: Tiny.reduce_lr_on_plateau_new(o, largest, 0.5, 2, 1e-4, 1, 0.02),
              lambda o: lr.ReduceLROnPlateau(o, "max" if largest else "min", 0.5, 2, 1e-4, cooldown=1, min_lr=0.02), metrics=metrics)
    optimizer = Tiny.sgd_new([p], 0.1, 0, 0, False)
    reference.raises("no schedule", Tiny.step_lr_new, optimizer, 0, 0.1)
    reference.raises("no schedule", Tiny.sequential_lr_new, [Tiny.step_lr_new(optimizer, 1, 1)], [1])
    reference.raises("metric", Tiny.reduce_lr_on_plateau_new(optimizer, False, 0.1, 1, 0, 0, 0).step)
    cycle = Tiny.one_cycle_lr_new(optimizer, 1, 2, 0.3, 25, 1e4)
    cycle.step()
    cycle.step()  # PyTorch's too has one more than there are rates, for the loop that ends with one
    reference.raises("has ended", cycle.step)


def check_clip():
    for norm, limit in ((2, 0.5), (1, 2), (float("inf"), 0.3), (3, 0.7), (2, 1e6)):
        starts = [random(shape) for shape in SHAPES]
        factors = [(random(a.shape), random(a.shape)) for a in starts]
        mine, theirs = [variable(a) for a in starts], [torch.nn.Parameter(torch.tensor(a)) for a in starts]
        tiny_loss(mine, factors).backward()
        tiny_loss(theirs, factors, tiny=False).backward()
        total = Tiny.clip_grad_norm(mine, limit, norm)
        expected = torch.nn.utils.clip_grad_norm_(theirs, limit, norm)
        reference.close(f"norm {norm}", total, expected, 1e-5, 1e-6)
        for p, q in zip(mine, theirs):
            reference.close(f"clipped by norm {norm}", p.get_grad(), q.grad, 1e-5, 1e-6)
        Tiny.clip_grad_value(mine, 0.05)
        torch.nn.utils.clip_grad_value_(theirs, 0.05)
        for p, q in zip(mine, theirs):
            reference.close("clipped by value", p.get_grad(), q.grad, 1e-5, 1e-6)
    reference.raises("limited to nan", Tiny.clip_grad_norm(mine, float("nan"), 2).realize)
    reference.raises("limited to -1", Tiny.clip_grad_value, mine, -1)


def check_scaler():
    """Grows after two good steps, halves and skips on an infinite gradient."""
    p, scaler = variable(np.array([1, 2], np.float32)), Tiny.GradScaler.new(1024, 2, 0.5, 2)
    optimizer = Tiny.adam_new([p], 0.1, 0.9, 0.999, 1e-8, 0)
    other = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    theirs, grown = torch.optim.Adam([other], 0.1), []
    for factor in (1, 2, np.inf, 3, np.nan, 1, 1):
        optimizer.zero_grad()
        scaler.scale(p.mul(p).mul(reference.to_tiny(np.array([factor, 1], np.float32))).sum([0], False)).backward()
        if factor == 3:
            scaler.unscale(optimizer)
            reference.raises("since the last update", scaler.unscale, optimizer)
            Tiny.clip_grad_value([p], 1)
        scaler.step(optimizer, [])
        reference.raises("has stepped since the last update", scaler.step, optimizer, [])
        scaler.update()
        grown.append(scaler.get_scale()[1])
        if np.isfinite(factor):
            theirs.zero_grad()
            (other * other * torch.tensor([float(factor), 1])).sum().backward()
            if factor == 3:
                torch.nn.utils.clip_grad_value_([other], 1)
            theirs.step()
        reference.close(f"scaled by {factor}", p, other, 1e-5, 1e-6)
    assert grown == [1024, 2048, 1024, 1024, 512, 512, 1024], grown
    reference.raises("no gradients were unscaled", scaler.update)
    reference.raises("grows by 1", Tiny.GradScaler.new(1, 1, 0.5, 1).step, optimizer, [])


def check_scaled_optimizers():
    """One scale for two optimisers: it stays until update (), and only the step of the one with a bad gradient is skipped."""
    parameters = [variable(np.array([1, 2], np.float32)) for _ in range(2)]
    optimizers = [Tiny.sgd_new([p], 0.1, 0, 0, False) for p in parameters]
    scaler, scales = Tiny.GradScaler.new(1024, 2, 0.5, 2), []
    wanted = [np.array([1, 2], np.float32) for _ in range(2)]
    for factors in ((1, 2), (1, 1), (1, np.inf), (np.nan, 1), (2, 2), (1, 1)):
        for i, factor in enumerate(factors):
            optimizers[i].zero_grad()
            scaler.scale(parameters[i].mul(reference.to_tiny(np.array([factor, 1], np.float32))).sum([0], False)).backward()
        scaler.unscale(optimizers[1])
        for i, factor in enumerate(factors):
            before = scaler.get_scale()[1]
            scaler.step(optimizers[i], [])
            assert scaler.get_scale()[1] == before, "the scale moved in a step"
            if np.isfinite(factor):
                wanted[i] -= np.float32(0.1) * np.array([factor, 1], np.float32)
        scaler.update()
        scales.append(scaler.get_scale()[1])
        for i in range(2):
            np.testing.assert_allclose(reference.to_numpy(parameters[i]), wanted[i], 1e-6)
    assert scales == [1024, 2048, 1024, 512, 512, 1024], scales


def check_left_out():
    """A step without a gradient of a parameter is none of that parameter's: its count stays, also in state that is loaded."""
    rules = {
        "adam": (lambda p: Tiny.adam_new(p, 0.05, 0.9, 0.99, 1e-8, 0.01), lambda p: torch.optim.Adam(p, 0.05, (0.9, 0.99), weight_decay=0.01)),
        "adamw": (lambda p: Tiny.adamw_new(p, 0.05, 0.9, 0.99, 1e-8, 0.01), lambda p: torch.optim.AdamW(p, 0.05, (0.9, 0.99), weight_decay=0.01)),
        "adamax": (lambda p: Tiny.adamax_new(p, 0.05, 0.9, 0.99, 1e-8, 0), lambda p: torch.optim.Adamax(p, 0.05, (0.9, 0.99))),
        "nadam": (lambda p: Tiny.nadam_new(p, 0.05, 0.9, 0.99, 1e-8, 0, 0.004), lambda p: torch.optim.NAdam(p, 0.05, (0.9, 0.99), foreach=True)),
        "radam": (lambda p: Tiny.radam_new(p, 0.05, 0.9, 0.6, 1e-8, 0), lambda p: torch.optim.RAdam(p, 0.05, (0.9, 0.6))),
        "adagrad": (lambda p: Tiny.adagrad_new(p, 0.05, 0.1, 0, 0, 1e-10), lambda p: torch.optim.Adagrad(p, 0.05, 0.1)),
    }
    given = ((0, 1), (0, 1, 2), (1,), (0,), (0, 2), (), (0, 1, 2), (1, 2), (0, 1, 2))
    for name, (make, theirs) in rules.items():
        arrays = [random((3, 2)) for _ in range(3)]
        mine, others = [variable(a) for a in arrays], [torch.nn.Parameter(torch.tensor(a, dtype=torch.float64)) for a in arrays]
        optimizer, other = make(mine), theirs(others)
        for i, some in enumerate(given):
            if i == 5:
                again = make(mine)
                again.load_state_dict(optimizer.get_state_dict())
                optimizer = again
            optimizer.zero_grad()
            other.zero_grad(set_to_none=True)
            factors = [(random((3, 2)), random((3, 2))) for _ in some]
            if some:
                tiny_loss([mine[k] for k in some], factors).backward()
            for k, (c, d) in zip(some, factors):
                others[k].grad = 2 * torch.tensor(c, dtype=torch.float64) * others[k].detach() + torch.tensor(d, dtype=torch.float64)
            optimizer.step([])
            other.step()
            for k in range(3):
                reference.close(f"{name}: parameter {k} after step {i + 1}", mine[k], others[k].detach().float(), 2e-5, 2e-6)
                steps = sum(k in one for one in given[:i + 1])
                assert reference.to_numpy(optimizer.get_state_dict()[f"0.{k}.step"]) == steps, (name, k, i)


def check_accumulation():
    """Two backward passes and a step are one of the sum of the losses."""
    a = variable(np.array([1, 2], np.float32))
    optimizer = Tiny.sgd_new([a], 0.1, 0, 0, False)
    for _ in range(2):
        a.mul(a).sum([0], False).backward()
    optimizer.step([])
    reference.close("accumulated", a, np.array([1 - 0.4, 2 - 0.8], np.float32), 1e-6, 1e-6)


def check_loader():
    """A function in Python read from a thread, errors of it, arrays."""
    loader = Tiny.Loader.new_empty(10, 4)
    loader.add_field(Tiny.DType.F32, [2])
    loader.add_array(Tiny.DType.I32, [], GLib.Bytes.new(np.arange(10, dtype=np.int32).tobytes()))
    loader.set_function(lambda i, *_: GLib.Bytes.new(np.array([i, 2 * i], np.float32).tobytes()))
    loader.set_shuffle(True, 3)
    loader.set_prefetch(2)
    for epoch in range(2):
        loader.start_epoch(epoch)
        seen = []
        while batch := loader.next_batch():
            x, y = map(reference.to_numpy, batch)
            assert (x[:, 0] == y).all() and (x[:, 1] == 2 * y).all()
            seen += y.tolist()
        assert sorted(seen) == list(range(10)) and seen != list(range(10)), seen
    loader.set_function(lambda i, *_: None)
    reference.raises("gave nothing", loader.next_batch)


def check_bad_input():
    p, nan = variable(random((2,))), float("nan")
    for text, optimizer in (("learning rate nan", Tiny.sgd_new([p], nan, 0, 0, False)),
                            ("learning rate -1", Tiny.adam_new([p], -1, 0.9, 0.99, 1e-8, 0)),
                            ("beta2 1", Tiny.adam_new([p], 1, 0.9, 1, 1e-8, 0)),
                            ("weight decay -1", Tiny.lamb_new([p], 1, 0.9, 0.9, 1e-8, -1)),
                            ("momentum nan", Tiny.lars_new([p], 1, nan, 0, False, 1)),
                            ("looks ahead", Tiny.sgd_new([p], 1, 0, 0, True)),
                            ("parameter 1 is there already", Tiny.sgd_new([p, p], 1, 0, 0, False)),
                            ("parameter 0 is no matrix", Tiny.muon_new([variable(random(()))], 1, 0, 0, 5, False)),
                            ("not from 0 to 100", Tiny.muon_new([p], 1, 0, 0, 10 ** 6, False))):
        reference.raises(text, optimizer.step, [])
    good = Tiny.sgd_new([p], 1, 0, 0, False)
    reference.raises("learning rate nan", good.set_lr, nan)
    reference.raises("no group 1 of 1", good.set_group_lr, 1, 0.1)
    reference.raises("there already", good.add_group, [p], 1, 0)
    reference.raises("is damped", good.set_setting, 0, "dampening", 0.5)
    reference.raises("no setting “beta1”: there are lr, weight_decay", good.set_setting, 0, "beta1", 0.5)
    reference.raises("no group 1 of 1", good.set_setting, 1, "lr", 0.5)
    reference.raises("from 0 to 1", good.set_setting, 0, "nesterov", 2)
    good.step([])


wanted = sys.argv[1:]
checks = [check for name, check in sorted(globals().items()) if name.startswith("check_") and name not in ("check_steps",)]
for check in checks:
    if not wanted or check.__name__ in wanted:
        check()
print(f"{len(checks)} checks")
