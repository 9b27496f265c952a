# SPDX-License-Identifier: MIT
"""Optimisers and schedules beside PyTorch's: rates and momenta that change, and copies that go on."""
import copy
import pickle

import numpy as np
import torch

import checks
from tinycore import Tensor, TinyJit, nn, no_grad, optim


def close(mine, theirs, what, tolerance=1e-4):
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    checks.equal(mine.shape, theirs.shape, what)
    worst = np.abs(mine - theirs).max()
    checks.true(worst <= tolerance * max(1, np.abs(theirs).max()), f"{what}: off by {worst}:\n{mine}\nPyTorch's:\n{theirs}")


def test_cycled_momentum():
    """OneCycleLR and CyclicLR take the momentum along, as PyTorch's do: settings and what is learnt are the same, also in a recording."""
    def learn(module, make, schedule, make_tensor, recorded=False):
        p = make_tensor([1.0, -2.0, 3.0])
        optimizer = make(module, [p])
        scheduler, found, seen = schedule(module.lr_scheduler, optimizer), [], []

        def step():
            optimizer.zero_grad()
            ((p * p).sum() + p[0] * p[1]).backward()
            optimizer.step()
        step = TinyJit(step) if recorded else step
        for i in range(8):
            step()
            group = optimizer.param_groups[0]
            seen.append((group["lr"], group["betas"][0] if "betas" in group else group["momentum"]))
            scheduler.step()
            found.append(p.tolist())
        return found, seen
    kinds = (lambda m, p: m.SGD(p, lr=0.1), lambda m, p: m.SGD(p, lr=0.1, momentum=0.9, nesterov=True), lambda m, p: m.Adam(p, lr=0.1),
             lambda m, p: m.AdamW(p, lr=0.1))
    def one_cycle(schedules, optimizer):
        return schedules.OneCycleLR(optimizer, 0.1, total_steps=9)

    def cycles(schedules, optimizer):
        return schedules.CyclicLR(optimizer, 0.01, 0.1, 2, 3)
    for make, schedule in [(make, one_cycle) for make in kinds] + [(kinds[1], cycles)]:
        wanted, settings = learn(torch.optim, make, schedule, lambda data: torch.nn.Parameter(torch.tensor(data)))
        for recorded in (False, True):
            found, seen = learn(optim, make, schedule, lambda data: Tensor(data, requires_grad=True), recorded)
            close(seen, settings, "settings", 1e-6)
            close(found, wanted, f"values, recorded {recorded}", 1e-5)
    plain = optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.1, momentum=0.5)
    optim.lr_scheduler.OneCycleLR(plain, 0.1, 5, cycle_momentum=False)
    checks.equal(plain.param_groups[0]["momentum"], 0.5)
    error = checks.raises(ValueError, optim.lr_scheduler.OneCycleLR, plain, 0.1, 5, base_momentum=0.9, max_momentum=0.5)
    checks.true("cycle_momentum" in str(error), str(error))
    adam = optim.Adam([Tensor([1.0], requires_grad=True)], lr=0.1)  # PyTorch 1.13 refuses it here
    optim.lr_scheduler.CyclicLR(adam, 0.01, 0.1, 4).step()
    close(adam.param_groups[0]["betas"], (0.875, 0.999), "betas", 1e-6)
    for wrong, part in (({"mode": "round"}, "triangular2"), ({"step_size_up": 0}, "step_size_up"), ({"base_lr": [1, 2]}, "one for each of 1"), ({"max_lr": "a"}, "max_lr")):
        error = checks.raises((TypeError, ValueError), optim.lr_scheduler.CyclicLR, adam, **{"base_lr": 0.1, "max_lr": 0.2, **wrong})
        checks.true(part in str(error), str(error))


def test_optimizers_copied():
    """A copy of an optimiser goes on as the first one does, and with a network that is copied with it changes that."""
    x, y = Tensor.randn(8, 3), Tensor.randn(8, 2)

    def learn(net, optimizer, n):
        for _ in range(n):
            optimizer.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            optimizer.step()
        return [one.tolist() for one in net.parameters()]
    for make in (lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1), lambda p: optim.SGD(p, 0.1), lambda p: optim.AdamW(p, lr=0.1, betas=(0.8, 0.9)),
                 lambda p: optim.Adam([{"params": p[:1], "lr": 0.01}, {"params": p[1:]}], lr=0.1), lambda p: optim.LARS(p, lr=0.1),
                 lambda p: optim.Muon(p[:1], lr=0.1)):
        net = nn.Linear(3, 2)
        optimizer = make(list(net.parameters()))
        learn(net, optimizer, 2)
        copies = copy.deepcopy((net, optimizer)), pickle.loads(pickle.dumps((net, optimizer)))
        wanted = learn(net, optimizer, 3)
        for other, again in copies:
            checks.true(again.params[0] is next(iter(other.parameters())) and again.params[0] is not optimizer.params[0], "parameters")
            checks.equal([{**group, "params": 0} for group in again.param_groups], [{**group, "params": 0} for group in optimizer.param_groups])
            close(learn(other, again, 3)[0], wanted[0], repr(optimizer), 1e-6)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 2)
    for what in (copy.deepcopy, pickle.dumps):
        checks.true("make another" in str(checks.raises(TypeError, what, scheduler)))


def test_schedules():
    """Rates of all schedules that the package has, group by group, are PyTorch's."""
    def rates(make, module, n=12, metrics=None):
        one = [Tensor([1.0], requires_grad=True) if module is optim else torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
        optimizer = module.SGD([{"params": one[:1]}, {"params": one[1:], "lr": 0.5}], lr=0.1)
        scheduler, found = make(module.lr_scheduler, optimizer), []
        for i in range(n):
            found.append([group["lr"] for group in optimizer.param_groups])
            scheduler.step(*([metrics[i]] if metrics else []))
        return found
    for make in (lambda s, o: s.StepLR(o, 3, 0.5), lambda s, o: s.OneCycleLR(o, 0.7, 14, cycle_momentum=False),
                 lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2), lambda s, o: s.LambdaLR(o, lambda i: 1 / (1 + i)),
                 lambda s, o: s.MultiplicativeLR(o, lambda i: 1 - i / 20), lambda s, o: s.MultiplicativeLR(o, [lambda i: 0.5, lambda i: 0.9]),
                 lambda s, o: s.CyclicLR(o, 0.1, 0.7, 3, cycle_momentum=False), lambda s, o: s.CyclicLR(o, 0, [0.7, 0.3], 2, 3, "triangular2", cycle_momentum=False),
                 lambda s, o: s.CyclicLR(o, [0.1, 0.2], 0.7, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
                 lambda s, o: s.CyclicLR(o, 0.1, 0.7, 1, 2, scale_fn=lambda x: 1 / x, cycle_momentum=False),
                 lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1, 4), s.ExponentialLR(o, 0.9)], [4]),
                 lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.MultiStepLR(o, [2, 5], 0.5)]),
                 lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1, 4), s.CyclicLR(o, 0.1, 0.7, 2, cycle_momentum=False), s.MultiplicativeLR(o, lambda i: 0.5)], [3, 8]),
                 lambda s, o: s.SequentialLR(o, [s.MultiplicativeLR(o, lambda i: 0.9), s.ConstantLR(o, 0.3, 4)], [4]),
                 lambda s, o: s.SequentialLR(o, [s.CyclicLR(o, [0.1, 0.2], 0.7, 2, cycle_momentum=False), s.ExponentialLR(o, 0.9)], [5]),
                 lambda s, o: s.ChainedScheduler([s.CyclicLR(o, 0.1, 0.7, 2, cycle_momentum=False), s.MultiplicativeLR(o, lambda i: 1 / i)])):
        close(rates(make, optim), rates(make, torch.optim), "rates", 1e-6)
    metrics = [5, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3]
    close(rates(lambda s, o: s.ReduceLROnPlateau(o, patience=2), optim, metrics=metrics),
          rates(lambda s, o: s.ReduceLROnPlateau(o, patience=2), torch.optim, metrics=metrics), "plateau", 1e-6)

    def after_plateau(s, o):
        plateau = s.ReduceLROnPlateau(o, patience=0)
        for _ in range(3):
            plateau.step(1.0)
        return s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3])
    close(rates(after_plateau, optim), rates(after_plateau, torch.optim), "after a plateau", 1e-7)
    s, o = optim.lr_scheduler, optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.1)
    some = [s.StepLR(o, 2), s.MultiplicativeLR(o, lambda i: 0.5)]
    first = s.SequentialLR(o, some, [2])
    for _ in range(3):
        first.step()
    state, rate = first.state_dict(), o.param_groups[0]["lr"]
    again = s.SequentialLR(o, some, [2])
    again.load_state_dict(state)
    checks.equal((again.last_epoch, o.param_groups[0]["lr"]), (3, rate))
    for call, part in ((lambda: s.SequentialLR(o, some, [2, 1]), "milestones"), (lambda: s.SequentialLR(o, some, []), "milestones"),
                       (lambda: s.ChainedScheduler([]), "at least one"), (lambda: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), "schedulers"),
                       (lambda: s.ChainedScheduler(some, optim.SGD([Tensor([1.0])])), "one optimizer"), (lambda: s.SequentialLR(o, 3, [1]), "schedulers")):
        error = checks.raises((TypeError, ValueError), call)
        checks.true(part in str(error), str(error))


def test_lbfgs():
    """Rosenbrock's valley of two tensors, with and without a line search, over several steps and through a state, is gone down as PyTorch goes."""
    def learn(module, make, settings, n, state=None):
        x, y = make([-1.2, 1.0]), make([[0.5]])
        optimizer, losses = module.LBFGS([x, y], **settings), []

        def closure():
            optimizer.zero_grad()
            loss = 100 * (x[1] - x[0] * x[0]) ** 2 + (1 - x[0]) ** 2 + ((y - x[1]) ** 2).sum()
            loss.backward()
            losses.append(loss.item())
            return loss
        for i in range(n):
            optimizer.step(closure)
            if state and i == 1:
                optimizer.load_state_dict({**optimizer.state_dict()})
        return x.tolist() + y.flatten().tolist(), losses
    for settings, n in (({"line_search_fn": "strong_wolfe", "max_iter": 6, "max_eval": 40}, 4), ({"lr": 0.1, "max_iter": 5}, 3), ({"line_search_fn": "strong_wolfe"}, 3),
                        ({"lr": 0.1, "history_size": 2, "max_iter": 12}, 1)):
        wanted, losses = learn(torch.optim, lambda data: torch.nn.Parameter(torch.tensor(data)), settings, n)
        for state in (False, True):
            found, seen = learn(optim, lambda data: Tensor(data, requires_grad=True), settings, n, state)
            checks.true(abs(len(seen) - len(losses)) <= 1, f"{settings}: {len(seen)} losses, PyTorch {len(losses)}")
            close(found, wanted, f"LBFGS {settings}", 1e-3)
            close(seen[:8], losses[:8], f"LBFGS {settings}: losses", 1e-3)
    w = Tensor([1.0], requires_grad=True)
    optimizer = optim.LBFGS([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        return (w * w).sum().backward()
    with no_grad():  # a closure computes gradients also there
        optimizer.step(closure)
    checks.true(w.item() < 0.5, w.item())
    scheduler = optim.lr_scheduler.SequentialLR(optimizer, [optim.lr_scheduler.StepLR(optimizer, 1), optim.lr_scheduler.ConstantLR(optimizer, 0.5)], [2])
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(3):
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    close(rates, [0.1, 0.01, 0.05, 0.05], "rates of LBFGS")
    x, other = copy.deepcopy((w, optimizer))
    checks.true(other.params[0] is x and other.n_iter == optimizer.n_iter, "a copy changes the copied parameters")
    checks.equal({**other.param_groups[0], "params": 0}, {**optimizer.param_groups[0], "params": 0})
    for call, part in ((lambda: optim.LBFGS([w], line_search_fn="armijo"), "strong_wolfe"), (lambda: optim.LBFGS([Tensor([1])]), "params"), (lambda: optim.LBFGS([w]).step(3), "closure")):
        error = checks.raises((TypeError, ValueError), call)
        checks.true(part in str(error), str(error))


def test_positions():
    """Arguments by position are PyTorch's where betas are a pair, else tinygrad's."""
    w = Tensor([1.0], requires_grad=True)
    for kind in (nn.optim.Adam, nn.optim.AdamW):
        group = kind([w], 1e-3, (0.8, 0.99), 1e-7, 0.02, True).param_groups[0]
        checks.equal([group[name] for name in ("lr", "betas", "eps", "weight_decay", "amsgrad")], [1e-3, (0.8, 0.99), 1e-7, 0.02, True])
        group = kind([w], 1e-3, 0.8, 0.99, 1e-7, 0.03).param_groups[0]
        checks.equal([group[name] for name in ("betas", "eps", "weight_decay")], [(0.8, 0.99), 1e-7, 0.03])


checks.run(globals())
