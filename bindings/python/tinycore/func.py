# SPDX-License-Identifier: MIT
"""Functions made of functions, under torch.func's names: vmap, jvp, vjp, grad, jacrev, jacfwd, hessian, functional_call; and checkpoint.

A function takes tensors and gives one, or a tuple of them. What it is called with stands for other values: it has a
shape and a dtype, and cannot be read."""
from __future__ import annotations

from collections.abc import Mapping

from .convert import NO_AXIS, as_axis, checked_all, list_of
from .errors import explained, heard, wants_function
from .library import Tiny

Base = Tiny.Tensor


def results_list(results, name):
    """Results of a function, as a list of tensors."""
    found = [results] if isinstance(results, Base) else list(results) if isinstance(results, (list, tuple)) else []
    if not found or not all(isinstance(one, Base) for one in found):
        raise TypeError(f"{name}: the function gives a tensor or a tuple of them, not {results!r:.80}")
    return found


class Traced:
    """A Python function as the library calls it. What it raises comes with the results, and is raised as they are looked at (errors.heard())."""

    def __init__(self, function, name):
        wants_function(function, name)
        self.function, self.name, self.is_one = function, name, True

    def __call__(self, inputs, *rest):
        results = self.function(*inputs)
        self.is_one = isinstance(results, Base)
        return results_list(results, self.name)

    def run(self, transform, *arguments):
        return transform(heard(self, self.name), None, *arguments)

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


def parts_of(value, found):
    """Appends the tensors in lists, tuples and dicts to @found."""
    if isinstance(value, Base):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for one in value:
            parts_of(one, found)
    elif isinstance(value, dict):
        parts_of(list(value.values()), found)
    return found


def filled(value, parts):
    """@value with its tensors replaced by what @parts, an iterator, gives; what is none is None."""
    if isinstance(value, Base):
        return next(parts)
    if isinstance(value, (list, tuple)):
        made = [filled(one, parts) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return {name: filled(one, parts) for name, one in value.items()} if isinstance(value, dict) else None


def gradients_of(function, name, argnums, has_aux):
    """The function of the same arguments that gives gradients, the value, and what comes beside it where @has_aux."""
    wants_function(function, name)

    def found_of(*inputs, **more):
        numbers = [argnums] if isinstance(argnums, int) else list(argnums)
        if any(not -len(inputs) <= i < len(inputs) for i in numbers):
            raise ValueError(f"{name}: argnums: {argnums} of {len(inputs)} arguments")
        given = [inputs[i] for i in numbers]
        targets = parts_of(given, [])
        if not targets:
            wants_tensor(given[0], name)
        loss = function(*inputs, **more)
        if has_aux and not (isinstance(loss, tuple) and len(loss) == 2):
            raise TypeError(f"{name}: has_aux: the function gives the value and something beside it, not {loss!r:.60}")
        loss, aux = loss if has_aux else (loss, None)
        wants_result(loss, name)
        found = filled(given, iter(loss.gradient(*targets)))
        return found[0] if isinstance(argnums, int) else tuple(found), loss, aux
    return found_of


def wants_result(loss, name):
    if not isinstance(loss, Base):
        raise TypeError(f"{name}: the function gives a tensor of one element, not {loss!r:.60}")


def grad(function, argnums: int | Sequence[int] = 0, has_aux=False) -> Callable[..., Any]:
    """The gradient of a function of one element's result with respect to argument @argnums, a tensor or lists and dicts of them, as which it comes; of several
    numbers a tuple. @has_aux: the function gives something beside the result, and so does this. One tensor given as two arguments counts as one."""
    found_of = gradients_of(function, "grad", argnums, has_aux)

    def gradient(*inputs, **more):
        found, _, aux = found_of(*inputs, **more)
        return (found, aux) if has_aux else found
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


def grad_and_value(function, argnums: int | Sequence[int] = 0, has_aux=False) -> Callable[..., tuple[Any, Any]]:
    """grad(), and the value, which is with what is beside it where @has_aux."""
    found_of = gradients_of(function, "grad_and_value", argnums, has_aux)

    def both(*inputs, **more):
        found, value, aux = found_of(*inputs, **more)
        return found, (value, aux) if has_aux else value
    return both


def functional_call(module: Module, parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]], args: Any = (), kwargs: Mapping[str, Any] | None = None, *,
                    tie_weights=True, strict=False) -> Any:
    """Calls @module with @args and @kwargs, and with other tensors in the place of its own, by their names in state_dict(). @tie_weights: one for all names
    of a shared tensor. @strict: all have to be there."""
    given = parameter_and_buffer_dicts
    given = dict(given) if isinstance(given, Mapping) else {name: one for part in given for name, one in part.items()}
    own = {f"{path}.{name}" if path else name: (owner, name, one) for path, owner in module.named_modules(remove_duplicate=False)
           for name, one, kind in owner.members() if kind is not None}
    missing, unknown = (sorted(set(a) - set(b)) for a, b in ((own, given), (given, own)))
    if unknown or strict and missing:
        raise ValueError(f"functional_call: {type(module).__name__} has no {', '.join(unknown)}" if unknown else f"functional_call: not given: {', '.join(missing)}")
    wanted = {id(own[path][2]): one for path, one in given.items()} if tie_weights else {}
    rows = [(owner, name, one, given.get(path, wanted.get(id(one)))) for path, (owner, name, one) in own.items()]
    rows = [row for row in rows if row[3] is not None]
    try:
        for owner, name, _, value in rows:
            owner.swap(name, value)
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for owner, name, one, _ in rows:
            owner.swap(name, one)


def checkpoint(function, *inputs: Tensor) -> Any:
    """What @function gives; in the backward pass it is computed once more instead of kept."""
    traced = Traced(function, "checkpoint")
    return traced.unpack(traced.run(Tiny.checkpoint, list_of(inputs, "checkpoint")))


def hessian(function) -> Callable[..., Any]:
    """All second derivatives of a function that gives one number."""
    return derived(function, "hessian", Tiny.hessian)
