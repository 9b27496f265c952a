# SPDX-License-Identifier: MIT
"""Functions made of functions, under torch.func's names: vmap, jvp, vjp, grad, jacrev, jacfwd, hessian; and checkpoint.

A function takes tensors and gives one, or a tuple of them. What it is called with stands for other values: it has a
shape and a dtype, and cannot be read."""
from __future__ import annotations

from .convert import NO_AXIS, as_axis, checked_all, list_of
from .errors import explained, wants_function
from .library import Tiny

Base = Tiny.Tensor


class Traced:
    """A Python function as the library calls it. What it raises is raised again where the library was called."""

    def __init__(self, function, name):
        wants_function(function, name)
        self.function, self.name, self.error, self.is_one = function, name, None, True

    def __call__(self, inputs, *rest):
        try:
            results = self.function(*inputs)
            self.is_one = isinstance(results, Base)
            results = [results] if self.is_one else list(results)
            if not results or not all(isinstance(one, Base) for one in results):
                raise TypeError(f"{self.name}: the function gives a tensor or a tuple of them, not {results!r:.80}")
            return results
        except BaseException as error:
            self.error = error
            return [Base.zeros(Tiny.DType.F32, [-1])]  # a tensor that carries an error

    def run(self, transform, *arguments):
        results = transform(self, None, *arguments)
        if self.error is not None:
            raise self.error
        return results

    def unpack(self, results):
        checked_all(results)
        return results[0] if self.is_one else tuple(results)


def wants_tensor(first, name):
    """A TypeError unless @first, given to what @name made, is a tensor."""
    if not isinstance(first, Base):
        raise TypeError(f"{name}: a tensor is wanted first, not {first!r:.60}")


def batch_axes(dims, n, name):
    """Along which axis each of @n is a batch; NO_AXIS: it is none."""
    dims = [dims] * n if dims is None or not isinstance(dims, (list, tuple)) else list(dims)
    return [NO_AXIS if one is None else as_axis(one, name) for one in dims]


def vmap(function, in_dims: Any = 0, out_dims: Any = 0, randomness="error") -> Callable[..., Any]:
    """@function for every element along an axis of its arguments; None: the same for all. @randomness of what it draws: "error",
    "different" for each element, "same" for all."""
    wants_function(function, "vmap")
    if not isinstance(randomness, str):
        raise TypeError(f"vmap: randomness: a text is wanted, not {randomness!r:.60}")
    outs = batch_axes(out_dims, 1, "vmap: out_dims") if out_dims != 0 else []  # none: 0 for all

    def batched(*inputs):
        traced = Traced(function, "vmap")
        inputs = list_of(inputs, "vmap")
        return traced.unpack(traced.run(Tiny.vmap_with_randomness, inputs, batch_axes(in_dims, len(inputs), "vmap: in_dims"), outs, randomness))
    return batched


@explained
def jvp(function, primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[Any, Any]:
    """The value of @function, and how it changes along @tangents."""
    traced = Traced(function, "jvp")
    derivatives, values = traced.run(Tiny.jvp, list_of(primals, "jvp"), list_of(tangents, "jvp"))
    return traced.unpack(values), traced.unpack(derivatives)


def grad(function) -> Callable[..., Tensor]:
    """The gradient of a function of one element's result with respect to its first argument."""
    wants_function(function, "grad")

    def gradient(first, *others):
        wants_tensor(first, "grad")
        loss = function(first, *others)
        return loss.gradient(first)[0]
    return gradient


def vjp(function, *primals: Tensor) -> tuple[Any, Callable[..., Any]]:
    """The value of @function, and the function from its gradient to a tuple of the arguments' gradients."""
    wants_function(function, "vjp")

    def pull(*gradients):
        traced = Traced(function, "vjp")
        found, _ = traced.run(Tiny.vjp, list_of(primals, "vjp"), list_of(gradients, "vjp"))
        return tuple(checked_all(found))
    return function(*primals), pull


def derived(function, name, call):
    """The function of the same arguments that gives what @call finds: a tensor, or several."""
    wants_function(function, name)

    def found_of(*inputs):
        found = Traced(function, name).run(call, list_of(inputs, name))
        checked_all(found)
        return found[0] if len(found) == 1 else tuple(found)
    return found_of


def jacrev(function) -> Callable[..., Any]:
    """All derivatives of all results with respect to the argument."""
    return derived(function, "jacrev", Tiny.jacobian)


def jacfwd(function) -> Callable[..., Any]:
    """All derivatives of all results with respect to the argument: one jvp() for each of its elements, side by side."""
    wants_function(function, "jacfwd")

    def jacobian(first, *others):
        wants_tensor(first, "jacfwd")
        one = lambda tangent: jvp(lambda x: function(x, *others), (first,), (tangent,))[1]  # noqa: E731
        basis = type(first).eye(first.numel(), dtype=first.dtype, device=first.get_device()).reshape(-1, *first.shape)
        found = vmap(one)(basis)
        back = lambda rows: rows.movedim(0, -1).reshape(*rows.shape[1:], *first.shape)  # noqa: E731
        return back(found) if isinstance(found, Base) else tuple(map(back, found))
    return jacobian


def grad_and_value(function) -> Callable[..., tuple[Tensor, Tensor]]:
    """grad(), and the value."""
    wants_function(function, "grad_and_value")

    def both(first, *others):
        wants_tensor(first, "grad_and_value")
        loss = function(first, *others)
        return loss.gradient(first)[0], loss
    return both


def checkpoint(function, *inputs: Tensor) -> Any:
    """What @function gives; in the backward pass it is computed once more instead of kept."""
    traced = Traced(function, "checkpoint")
    return traced.unpack(traced.run(Tiny.checkpoint, list_of(inputs, "checkpoint")))


def hessian(function) -> Callable[..., Any]:
    """All second derivatives of a function that gives one number."""
    return derived(function, "hessian", Tiny.hessian)
