# SPDX-License-Identifier: MIT
"""Functions made of functions, under torch.func's names: vmap, jvp, vjp, grad, jacrev, jacfwd, hessian, functional_call; and checkpoint.

A function takes tensors and gives one, or lists, tuples and dicts of them. What it is called with stands for other
values: it has a shape and a dtype, and cannot be read."""
from __future__ import annotations

from collections.abc import Mapping

from .convert import NO_AXIS, as_axis, checked_all, operand
from .errors import explained, heard, wants_function
from .library import Tiny

Base = Tiny.Tensor


# ---- trees: tensors in lists, tuples and dicts ----
def results_list(results, name):
    """The tensors of what a function gives, in their order."""
    found = []

    def add(value):
        if isinstance(value, Base):
            found.append(value)
        elif isinstance(value, (list, tuple, dict)):
            for one in value.values() if isinstance(value, dict) else value:
                add(one)
        else:
            raise TypeError(f"{name}: the function gives a tensor or a tuple of them, not {results!r:.80}")
    add(results)
    if not found:
        raise TypeError(f"{name}: the function gives a tensor or a tuple of them, not {results!r:.80}")
    return found


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


def filled(value, parts, keeps=False):
    """@value with its tensors replaced by what @parts, an iterator, gives; what is none is None, or stays where @keeps."""
    if isinstance(value, Base):
        return next(parts)
    if isinstance(value, (list, tuple)):
        made = [filled(one, parts, keeps) for one in value]
        return type(value)(*made) if hasattr(value, "_make") else type(value)(made)
    if isinstance(value, dict):
        return {name: filled(one, parts, keeps) for name, one in value.items()}
    return value if keeps else None


def given_to(inputs, name):
    """Arguments with tensors in the place of numbers and arrays, and all tensors in them."""
    inputs = [one if isinstance(one, (Base, list, tuple, dict)) or one is None else operand(one, name) for one in inputs]
    tensors = parts_of(inputs, [])
    if inputs and not tensors:
        wants_tensor(inputs[0], name)
    return inputs, tensors


def dims_of(value, dims, name):
    """Along which axis each tensor of @value is a batch; NO_AXIS: it is none. @dims: for all of it, or in a tree like it."""
    if isinstance(dims, (list, tuple, dict)):
        if not isinstance(value, (list, tuple, dict)) or len(value) != len(dims):
            raise ValueError(f"{name}: {dims!r:.60} does not fit {len(value) if isinstance(value, (list, tuple, dict)) else 'one'} of {type(value).__name__}")
        rows = [(value[key], dims[key]) for key in value] if isinstance(value, dict) else list(zip(value, dims))
        return [axis for one, dim in rows for axis in dims_of(one, dim, name)]
    return [NO_AXIS if dims is None else as_axis(dims, name)] * len(parts_of(value, []))


class Traced:
    """A Python function as the library calls it, with the tensors of @inputs, a list of arguments. What it raises comes with the results, and is raised as they are
    looked at (errors.heard())."""

    def __init__(self, function, name, inputs):
        wants_function(function, name)
        self.function, self.name, self.inputs, self.results, self.aux = function, name, inputs, None, None

    def __call__(self, tensors, *rest):
        self.results = self.function(*filled(self.inputs, iter(tensors), True))
        return results_list(self.results, self.name)

    def run(self, transform, *arguments):
        """All that the library finds."""
        return checked_all(transform(heard(self, self.name), None, *arguments))

    def run_first(self, transform, *arguments):
        """The first of two lists of it."""
        return checked_all(transform(heard(self, self.name), None, *arguments)[0])

    def run_pair(self, transform, *arguments):
        """Values and derivatives, in the form of the results."""
        derivatives, values = transform(heard(self, self.name), None, *arguments)
        return self.unpack(checked_all(values)), self.unpack(checked_all(derivatives))

    def unpack(self, results):
        return filled(self.results, iter(results))


def wants_tensor(first, name):
    """A TypeError unless @first, given to what @name made, is a tensor."""
    if not isinstance(first, Base):
        raise TypeError(f"{name}: a tensor is wanted first, not {first!r:.60}")


def split_aux(results, name):
    """The value and what is beside it, of a function that gives both."""
    if not isinstance(results, tuple) or len(results) != 2:
        raise TypeError(f"{name}: has_aux: the function gives the value and something beside it, not {results!r:.60}")
    return results


def without_aux(function, has_aux, name):
    return (lambda *inputs, **more: split_aux(function(*inputs, **more), name)[0]) if has_aux else function


def vmap(func, in_dims: Any = 0, out_dims: Any = 0, randomness="error", *, chunk_size: int = None) -> Callable[..., Any]:
    """@func for every element along an axis of its arguments, tensors or lists, tuples and dicts of them; None: the same for all. Axes are numbers, or in trees like
    the arguments and results. @randomness of what it draws: "error", "different" for each element, "same" for all. @chunk_size is PyTorch's, and changes nothing."""
    wants_function(func, "vmap")
    if not isinstance(randomness, str):
        raise TypeError(f"vmap: randomness: a text is wanted, not {randomness!r:.60}")

    def batched(*inputs, **more):
        inputs, tensors = given_to(inputs, "vmap")
        traced = Traced(lambda *given: func(*given, **more), "vmap", inputs)
        axes = dims_of(inputs, list(in_dims) if isinstance(in_dims, (list, tuple)) else in_dims, "vmap: in_dims")
        is_flat = out_dims is None or isinstance(out_dims, (list, tuple)) and not any(isinstance(one, (list, tuple, dict)) for one in out_dims)
        first = [NO_AXIS if one is None else as_axis(one, "vmap: out_dims") for one in out_dims or [None]] if is_flat else []
        found = traced.run(Tiny.vmap_with_randomness, tensors, axes, first, randomness)
        if not is_flat and out_dims != 0:  # in the form of the results, which only now is known
            places = dims_of(traced.results, out_dims, "vmap: out_dims")
            found = [one[0] if axis == NO_AXIS else one.movedim(0, axis) for one, axis in zip(found, places)]
        return traced.unpack(found)
    return batched


@explained
def jvp(func, primals: Sequence[Any], tangents: Sequence[Any], *, strict=False, has_aux=False) -> tuple[Any, ...]:
    """The value of @func, and how it changes along @tangents, which are as its arguments @primals: tensors, or lists, tuples and dicts of them. @has_aux: it gives
    something beside the value, and so does this."""
    wants_function(func, "jvp")
    inputs, tensors = given_to(primals, "jvp")
    traced = Traced(without_aux(func, has_aux, "jvp"), "jvp", inputs)
    found = traced.run_pair(Tiny.jvp, tensors, given_to(tangents, "jvp")[1])
    return (*found, split_aux(func(*inputs), "jvp")[1]) if has_aux else found


def gradients_of(function, name, argnums, has_aux):
    """The function of the same arguments that gives gradients, the value, and what comes beside it where @has_aux."""
    wants_function(function, name)

    def found_of(*inputs, **more):
        given = chosen(inputs, argnums, name)
        targets = parts_of(given, [])
        if not targets:
            wants_tensor(given[0], name)
        loss = function(*inputs, **more)
        loss, aux = split_aux(loss, name) if has_aux else (loss, None)
        wants_result(loss, name)
        found = filled(given, iter(loss.gradient(*targets)))
        return found[0] if isinstance(argnums, int) else tuple(found), loss, aux
    return found_of


def chosen(inputs, argnums, name):
    """The arguments with numbers @argnums."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    if any(not -len(inputs) <= i < len(inputs) for i in numbers):
        raise ValueError(f"{name}: argnums: {argnums} of {len(inputs)} arguments")
    return [inputs[i] for i in numbers]


def wants_result(loss, name):
    if not isinstance(loss, Base):
        raise TypeError(f"{name}: the function gives a tensor of one element, not {loss!r:.60}")


def grad(func, argnums: int | Sequence[int] = 0, has_aux=False) -> Callable[..., Any]:
    """The gradient of a function of one element's result with respect to argument @argnums, a tensor or lists and dicts of them, as which it comes; of several
    numbers a tuple. @has_aux: the function gives something beside the result, and so does this. One tensor given as two arguments counts as one."""
    found_of = gradients_of(func, "grad", argnums, has_aux)

    def gradient(*inputs, **more):
        found, _, aux = found_of(*inputs, **more)
        return (found, aux) if has_aux else found
    return gradient


def vjp(func, *primals: Any, has_aux=False) -> tuple[Any, ...]:
    """The value of @func, and the function from its gradient, which is as the value, to a tuple of the arguments' gradients, which are as these. @has_aux: it gives
    something beside the value, and so does this."""
    wants_function(func, "vjp")

    def pull(*gradients):
        inputs, tensors = given_to(primals, "vjp")
        found = Traced(without_aux(func, has_aux, "vjp"), "vjp", inputs).run_first(Tiny.vjp, tensors, given_to(gradients, "vjp")[1])
        return tuple(filled(inputs, iter(found)))
    if has_aux:
        value, aux = split_aux(func(*primals), "vjp")
        return value, pull, aux
    return func(*primals), pull


def derived(function, name, call, argnums, has_aux=False):
    """The function of the same arguments that gives what @call finds of those with numbers @argnums: for each tensor of the results, or for hessian() of the
    arguments, what is as the arguments."""
    wants_function(function, name)

    def found_of(*inputs):
        given = chosen(inputs, argnums, name)
        given, targets = given_to(given, name)
        numbers = [i % len(inputs) for i in ([argnums] if isinstance(argnums, int) else argnums)]

        def of_given(*arguments):
            some = dict(zip(numbers, arguments))
            return without_aux(function, has_aux, name)(*(some.get(i, one) for i, one in enumerate(inputs)))
        traced = Traced(of_given, name, given)
        found = traced.run(call, targets)

        def as_given(parts):
            made = filled(given, iter(parts))
            return made[0] if isinstance(argnums, int) else tuple(made)
        rows = [as_given(found[i:i + len(targets)]) for i in range(0, len(found), len(targets))]
        result = as_given(rows) if call is Tiny.hessian else traced.unpack(rows)
        return (result, split_aux(function(*inputs), name)[1]) if has_aux else result
    return found_of


def jacrev(func, argnums: int | Sequence[int] = 0, *, has_aux=False, chunk_size: int = None) -> Callable[..., Any]:
    """All derivatives of all results with respect to argument @argnums, a tensor or lists, tuples and dicts of them, as which they come; of several numbers a tuple.
    They are found forward or in reverse, whichever is less."""
    return derived(func, "jacrev", Tiny.jacobian, argnums, has_aux)


def jacfwd(func, argnums: int | Sequence[int] = 0, has_aux=False, *, randomness="error") -> Callable[..., Any]:
    """jacrev()."""
    return derived(func, "jacfwd", Tiny.jacobian, argnums, has_aux)


def grad_and_value(func, argnums: int | Sequence[int] = 0, has_aux=False) -> Callable[..., tuple[Any, Any]]:
    """grad(), and the value, which is with what is beside it where @has_aux."""
    found_of = gradients_of(func, "grad_and_value", argnums, has_aux)

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


def checkpoint(function, *inputs: Any, use_reentrant: bool = None, preserve_rng_state=True, **more: Any) -> Any:
    """The result of @function; in the backward pass it is computed once more instead of kept. @use_reentrant and @preserve_rng_state are PyTorch's, and change
    nothing."""
    wants_function(function, "checkpoint")
    inputs, tensors = given_to(inputs, "checkpoint")
    traced = Traced(lambda *given: function(*given, **more), "checkpoint", inputs)
    return traced.unpack(traced.run(Tiny.checkpoint, tensors))


def hessian(func, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """All second derivatives of a function that gives one number, with respect to argument @argnums."""
    return derived(func, "hessian", Tiny.hessian, argnums)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters, and the buffers, of modules of one kind, those of all in one tensor with a first axis for them: for vmap() of functional_call()."""
    def stacked(rows):
        return {name: type(one).stack([row[name] for row in rows]).detach() for name, one in rows[0].items()}
    if not models:
        raise ValueError("stack_module_state: no modules are given")
    parameters = stacked([dict(model.named_parameters()) for model in models])
    for one in parameters.values():
        one.requires_grad = True
    return parameters, stacked([dict(model.named_buffers()) for model in models])
