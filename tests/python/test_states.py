#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A held value that is only read through something else is stored after a few readers: a loop launches as much in each round.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import checks
import tinycore
from tinycore import Tensor, nn
from tinycore.helpers import GlobalCounters

ROUNDS = 16


def count_kernels(step, state=None):
    """Those of the last round of a loop, and of one four rounds before it."""
    counts = []
    for _ in range(ROUNDS):
        GlobalCounters.reset()
        state = step(state)
        counts.append(GlobalCounters.kernel_count)
    return counts[-1], counts[-5]


def check_flat(step, state=None):
    last, before = count_kernels(step, state)
    checks.equal(last, before)


def test_cells():
    """Their states are contiguous; weights may want gradients where none is recorded."""
    x = Tensor.rand(1, 8).realize()
    for cell in nn.RNNCell(8, 16), nn.GRUCell(8, 16), nn.LSTMCell(8, 16):
        for wants in False, True:
            for weight in cell.parameters():
                weight.requires_grad_(wants)

            def step(state):
                with tinycore.no_grad():
                    state = cell(x, state) if state is not None else cell(x)
                    (state[0] if isinstance(state, tuple) else state).sum().item()
                return state

            check_flat(step)


def test_contiguous():
    weight = (Tensor.randn(16, 16) * 0.1).realize()

    def read(state):
        (state * 2).sum().item()
        return state

    check_flat(lambda h: read((h @ weight + 1).tanh().contiguous()), Tensor.zeros(1, 16))
    check_flat(lambda h: read((h @ weight + 1).softmax(-1).clone()), Tensor.zeros(1, 16))


def test_detached():
    """No gradient flows through what is detached, though it does through what that was: before it is read, and after."""
    weight = (Tensor.randn(16, 16) * 0.1).realize()
    weight.requires_grad = True

    def detach_after(h):
        h = (h @ weight + 1).tanh()
        (h * 2).sum().item()
        return h.detach()

    def detach_before(h):
        h = (h.detach() @ weight + 1).tanh()
        (h * 2).sum().item()
        return h

    for step in detach_after, detach_before:
        check_flat(step, Tensor.zeros(1, 16))
    state = detach_after(Tensor.zeros(1, 16))
    for _ in range(6):
        state = detach_after(state)
    ((state @ weight).sum()).backward()
    wanted = state.numpy()[0][:, None].repeat(16, 1)
    checks.equal(abs(weight.grad.numpy() - wanted).max() < 1e-5, True)


def test_written():
    """What is written to in part again and again has memory then, and is no longer expression with each write; where a
    gradient flows to it, its expression stays."""
    x, view, longest = Tensor.zeros(64), Tensor.arange(64).reshape(8, 8) + 1, 0
    for i in range(64):
        x[i] = i
        view[:, 3][i // 8] = i
        longest = max(longest, *(len(one.uop.toposort()) for one in (x, view)))
    checks.true(longest < 150, longest)
    checks.equal((x.tolist(), view[:, 3].tolist()), ([*map(float, range(64))], [*range(7, 64, 8)]))
    weight = Tensor.ones(64, requires_grad=True)
    masked = weight * 2
    for i in range(32):
        masked[i] = 0
    masked.sum().backward()
    checks.equal(weight.grad.tolist(), [0.0] * 32 + [2.0] * 32)


def test_large():
    """A state of 2 MiB."""
    weight = (Tensor.randn(16, 16) * 0.1).realize()

    def step(h):
        h = (h @ weight + 1).tanh()
        (h * 2).sum().item()
        return h

    check_flat(step, Tensor.zeros(1 << 15, 16))


def read_often(values):
    """Those of them that are stored then."""
    for _ in range(4):
        for one in values:
            (one * 2).sum().item()
    return sum(one.is_realized() for one in values)


def test_budget():
    """Values of 1 MiB are kept up to 64 MiB together; small ones have a place beside them; what is gone makes place."""
    n, budget = 96, 64 << 20
    weight = (Tensor.randn(512, 512) * 0.01).realize()
    for _ in range(2):
        held = [(weight @ weight + i).tanh() for i in range(n)]
        small = (weight[:16, :16] @ weight[:16, :16]).tanh()
        checks.equal(n // 2 < read_often(held) < budget >> 20, True)
        checks.equal(read_often([small]), 1)
        del held, small


checks.run(globals())
