#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions made of Python functions: batched, derived forward, backward and twice; what they raise is raised.

TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import checks
from tinycore import Tensor, dtypes, func, nn, no_grad


def test_vmap():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    checks.equal(func.vmap(lambda row: (row * row).sum())(x).tolist(), [5, 25])
    checks.equal(func.vmap(lambda column: column.sum(), in_dims=1)(x).tolist(), [4, 6])
    checks.equal(func.vmap(lambda row, y: row + y, in_dims=(0, None))(x, Tensor([10.0, 20.0])).tolist(), [[11, 22], [13, 24]])
    for settings in ({}, {"out_dims": (0, 0)}):
        one, two = func.vmap(lambda row: (row * 2, row.sum()), **settings)(x)
        checks.equal((one.tolist(), two.tolist()), ([[2, 4], [6, 8]], [3, 7]))


def test_derivatives():
    x = Tensor([1.0, 2.0])
    value, tangent = func.jvp(lambda t: t * t, (x,), (Tensor([1.0, 0.5]),))
    checks.equal((value.tolist(), tangent.tolist()), ([1, 4], [2, 2]))
    checks.equal(func.jacrev(lambda t: t * t)(x).tolist(), [[2, 0], [0, 4]])
    checks.equal(func.jacfwd(lambda t, k: (t * t).sum() * t * k)(x, 2.0).tolist(), func.jacrev(lambda t: (t * t).sum() * t * 2)(x).tolist())
    both = func.jacfwd(lambda t: (t.sum(), t.unsqueeze(0) * 2))(x)
    checks.equal([one.tolist() for one in both], [[1, 1], [[[2, 0], [0, 2]]]])
    checks.equal([one.tolist() for one in func.grad_and_value(lambda t: (t * t).sum())(x)], [[2, 4], 5])
    checks.equal(func.hessian(lambda t: (t * t * t).sum())(x).tolist(), [[6, 0], [0, 12]])
    checks.equal(func.grad(lambda t, k: (t * t * k).sum())(x, 3.0).tolist(), [6, 12])
    value, pull = func.vjp(lambda t: t * t, x)
    checks.equal((value.tolist(), pull(Tensor([1.0, 1.0]))[0].tolist()), ([1, 4], [2, 4]))
    w = Tensor([2.0], requires_grad=True)
    func.checkpoint(lambda t: t * t * 3, w).sum().backward()
    checks.equal(w.grad.tolist(), [12])


def test_trees():
    """Arguments and results may be lists, tuples and dicts of tensors."""
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    both = func.vmap(lambda d, k: {"sum": d["a"].sum(), "rest": (d["b"][0] * k, [d["a"]])}, in_dims=({"a": 0, "b": 1}, None))
    found = both({"a": x, "b": [x]}, Tensor(2.0))
    checks.equal((found["sum"].tolist(), found["rest"][0].tolist(), found["rest"][1][0].tolist()), ([3, 7], [[2, 6], [4, 8]], x.tolist()))
    checks.equal(both({"a": x, "b": [x]}, 2.0)["sum"].tolist(), [3, 7])
    checks.equal(func.vmap(lambda d: d["a"] * 2, chunk_size=1)({"a": x}).tolist(), [[2, 4], [6, 8]])
    turned = func.vmap(lambda row: {"a": row, "b": (row, row)}, out_dims={"a": 1, "b": (0, 1)})(x)
    checks.equal((turned["a"].tolist(), turned["b"][0].tolist(), turned["b"][1].tolist()), ([[1, 3], [2, 4]], x.tolist(), [[1, 3], [2, 4]]))
    checks.raises(ValueError, func.vmap(lambda d: d["a"], in_dims=({"a": 0, "b": 1},)), {"a": x})
    checks.raises(ValueError, func.vmap(lambda a: a, in_dims=(0, 1)), x)

    p = {"w": Tensor([2.0, 3.0]), "b": (Tensor(1.0),)}
    loss = lambda p, x: ((p["w"] * x).sum() + p["b"][0]) ** 2  # noqa: E731
    value, change = func.jvp(lambda p: {"y": p["w"] * p["b"][0]}, (p,), ({"w": Tensor([1.0, 0.0]), "b": (Tensor(0.5),)},))
    checks.equal((value["y"].tolist(), change["y"].tolist()), ([2, 3], [2, 1.5]))
    value, change, aux = func.jvp(lambda x: (x * x, "aux"), (x,), (x,), has_aux=True)
    checks.equal((change.tolist(), aux), ([[2, 8], [18, 32]], "aux"))
    value, pull = func.vjp(lambda p, k: (p["w"] * k, [p["b"][0]]), p, Tensor(2.0))
    gradients = pull((Tensor([1.0, 1.0]), [Tensor(5.0)]))
    checks.equal((gradients[0]["w"].tolist(), gradients[0]["b"][0].item(), gradients[1].item()), ([2, 2], 5, 5))
    value, pull, aux = func.vjp(lambda x: (x.sum(), {"n": 3}), x, has_aux=True)
    checks.equal((value.item(), pull(Tensor(2.0))[0].tolist(), aux), (10, [[2, 2], [2, 2]], {"n": 3}))
    checks.equal(func.grad(loss)(p, Tensor([1.0, 1.0]))["w"].tolist(), [12, 12])
    checks.equal(func.vmap(func.grad(loss), in_dims=(None, 0))(p, x)["w"].tolist(), [[2 * 9 * 1, 2 * 9 * 2], [2 * 19 * 3, 2 * 19 * 4]])
    checks.equal(func.checkpoint(lambda d: d["w"] * 2, p, use_reentrant=False).tolist(), [4, 6])


def test_numbers_of_arguments():
    """Derivatives are of the first argument, or of those that are named."""
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    product = lambda a, b: a * b  # noqa: E731
    for of in (func.jacrev, func.jacfwd):
        checks.equal(of(product)(a, b).tolist(), [[3, 0], [0, 4]])
        checks.equal(of(product, argnums=1)(a, b).tolist(), [[1, 0], [0, 2]])
        checks.equal([one.tolist() for one in of(product, argnums=(0, 1))(a, b)], [[[3, 0], [0, 4]], [[1, 0], [0, 2]]])
        checks.equal([one.tolist() for one in of(lambda a: (a.sum(), a * 2))(a)], [[1, 1], [[2, 0], [0, 2]]])
        found = of(lambda d: {"y": d["a"] * d["b"]})({"a": a, "b": b})
        checks.equal((found["y"]["a"].tolist(), found["y"]["b"].tolist()), ([[3, 0], [0, 4]], [[1, 0], [0, 2]]))
        value, aux = of(lambda a: (a * a, "aux"), has_aux=True)(a)
        checks.equal((value.tolist(), aux), ([[2, 0], [0, 4]], "aux"))
    twice = lambda a, b: (a * a * b).sum()  # noqa: E731
    checks.equal(func.hessian(twice)(a, b).tolist(), [[6, 0], [0, 8]])
    (aa, ab), (ba, bb) = func.hessian(twice, argnums=(0, 1))(a, b)
    checks.equal((aa.tolist(), ab.tolist(), ba.tolist(), bb.tolist()), ([[6, 0], [0, 8]], [[2, 0], [0, 4]], [[2, 0], [0, 4]], [[0, 0], [0, 0]]))
    checks.raises(ValueError, func.jacrev(product, argnums=2), a, b)


def test_stack_module_state():
    """Several networks at once."""
    nets = [nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = func.stack_module_state(nets)
    checks.equal((parameters["weight"].shape, parameters["weight"].requires_grad, buffers), ((4, 3, 2), True, {}))
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    found = func.vmap(lambda p, b, x: func.functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0, None))(parameters, buffers, x)
    wanted = Tensor.stack([net(x) for net in nets])
    checks.true((found - wanted).abs().max().item() < 1e-6)
    checks.raises(ValueError, func.stack_module_state, [])


def test_in_place():
    """A function may change what it was given: that is its own."""
    def one_more(a):
        a += 1
        return a

    def set_first(a):
        a[0] = 5
        return a

    def twice(a):
        a *= 2
        return a

    x = Tensor([1.0, 2.0])
    checks.equal(func.vmap(one_more)(x).tolist(), [2, 3])
    checks.equal(func.vmap(set_first)(Tensor.zeros(2, 2)).tolist(), [[5, 0], [5, 0]])
    value, tangent = func.jvp(one_more, (x,), (x,))
    checks.equal((value.tolist(), tangent.tolist()), ([2, 3], [1, 2]))
    checks.equal(func.jacrev(twice)(x).tolist(), [[2, 0], [0, 2]])
    checks.equal(func.hessian(lambda a: (twice(a) * a).sum())(x).tolist(), [[8, 0], [0, 8]])
    checks.equal(x.tolist(), [1, 2])


def test_read_before():
    """What is read before backward() has the gradient of what was not."""
    w = Tensor([1.0, 2.0], requires_grad=True)
    h = w * w
    a, b = h * 3, h * 5
    checks.equal((a.tolist(), str(h) != ""), ([3, 12], True))
    loss = (a + b).sum()
    checks.equal(loss.item(), 40)
    loss.backward()
    checks.equal(w.grad.tolist(), [16, 32])
    with no_grad():
        cut = (w * 2).sum()
    checks.raises(ValueError, cut.backward)


def test_many_positions():
    """Sums at so many positions that these are sorted have a gradient of their own: in batches, and forward."""
    n, places = 300, 60000
    at = [[(i * 7919 % 90) * 661 + batch for i in range(n)] for batch in range(2)]
    weights = [[float((i + batch) % 7) for i in range(n)] for batch in range(2)]

    def added(positions, values):
        return Tensor.zeros(places).index_add(0, positions, values)

    for own_at, own_weights in ((False, True), (True, False), (True, True)):
        positions, values = Tensor(at if own_at else at[0]), Tensor(weights if own_weights else weights[0])
        values.requires_grad = True
        found = func.vmap(added, in_dims=(0 if own_at else None, 0 if own_weights else None))(positions, values)
        scale = Tensor.arange(0, places, 1).reshape(1, places) * Tensor([[1.0], [2.0]])
        (found * scale).sum().backward()
        rows, wanted, slopes = found.tolist(), [[0.0] * places for _ in range(2)], [[0.0] * n for _ in range(2)]
        for batch in range(2):
            for i in range(n):
                place = at[batch if own_at else 0][i]
                wanted[batch][place] += weights[batch if own_weights else 0][i]
                slopes[batch if own_weights else 0][i] += place * (batch + 1)
        checks.true(rows == wanted, f"sums {own_at} {own_weights}")
        checks.equal(values.grad.tolist(), slopes if own_weights else slopes[0])
    plain = Tensor(at[0])
    value, tangent = func.jvp(lambda v: added(plain, v), (Tensor(weights[0]),), (Tensor(weights[1]),))
    checks.true(tangent.tolist() == added(plain, Tensor(weights[1])).tolist(), "forward")
    checks.true(value.tolist() == added(plain, Tensor(weights[0])).tolist())


def test_randomness():
    """A batch draws what its elements would draw together, or all the same; without a word it is refused."""
    def drawn(function):
        Tensor.manual_seed(7)
        return function().tolist()

    x = Tensor.zeros(4, 3)
    for draw in (lambda n: Tensor.rand(*n), lambda n: Tensor.randn(*n, dtype="float64"), lambda n: Tensor.randint(*n, low=0, high=1000),
                 lambda n: Tensor.ones(*n).dropout(0.5, training=True)):
        one, all_of = lambda t: t + draw((3,)), lambda: x + draw((4, 3))
        checks.equal(drawn(lambda: func.vmap(one, randomness="different")(x)), drawn(all_of))
        checks.equal(drawn(lambda: func.vmap(one, randomness="same")(x)), drawn(lambda: x + draw((3,))))
        checks.true("randomness" in str(checks.raises(ValueError, func.vmap(one), x)))

    def nested(outer, inner):
        return drawn(lambda: func.vmap(func.vmap(lambda t: t + Tensor.rand(2), randomness=inner), randomness=outer)(Tensor.zeros(4, 3, 2)))
    checks.equal(nested("different", "different"), drawn(lambda: Tensor.rand(4, 3, 2)))
    checks.equal(nested("same", "different"), drawn(lambda: Tensor.rand(3, 2).expand(4, 3, 2)))
    checks.equal(nested("different", "same"), drawn(lambda: Tensor.rand(4, 1, 2).expand(4, 3, 2)))
    checks.raises(ValueError, nested, "error", "same")
    checks.raises(ValueError, func.vmap(lambda t: t, randomness="any"), x)
    checks.raises(ValueError, func.vmap(lambda t: t + Tensor.randperm(3), randomness="different"), x)
    checks.equal(func.vmap(lambda t: t + Tensor.randperm(3).sort()[0], randomness="same")(x).tolist(), [[0, 1, 2]] * 4)
    checks.equal(func.vmap(lambda t: t + Tensor.rand(3), randomness="different")(Tensor.zeros(0, 3)).shape, (0, 3))


def test_errors():
    x = Tensor([1.0, 2.0])

    def fails(t):
        raise KeyError("mine")

    for transform in (lambda f: func.vmap(f)(x), lambda f: func.jvp(f, (x,), (x,)), lambda f: func.jacrev(f)(x),
                      lambda f: func.hessian(f)(x), lambda f: func.checkpoint(f, x)):
        checks.raises(KeyError, transform, fails)
        checks.raises(TypeError, transform, lambda t: 3)
        checks.raises(TypeError, transform, lambda t: [])
        checks.raises(ValueError, transform, lambda t: t.reshape(3))
    checks.raises((ValueError, TypeError), func.vmap(lambda t: t, in_dims=5), x)
    checks.raises(TypeError, func.vmap(lambda t: t), "x")
    checks.raises((ValueError, RuntimeError), func.vmap(lambda t: Tensor(t.item())), x)


def test_many():
    """References come out even."""
    x = Tensor([1.0, 2.0])
    for _ in range(300):
        found = func.vmap(lambda t: t * 2)(x)
        func.jvp(lambda t: t * t, (x,), (x,))
    checks.equal(found.tolist(), [2, 4])


checks.run(globals())
