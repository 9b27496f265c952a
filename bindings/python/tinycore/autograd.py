# SPDX-License-Identifier: MIT
"""grad() of tensors, hooks of gradients, and Function: an operation whose gradient a program writes itself, under torch.autograd's names."""
from __future__ import annotations

from weakref import ref

from .convert import checked_all
from .errors import InvalidError, call, reported
from .func import Traced
from .library import Tiny
from .tensor import Base


def listed(value: Any, name: str) -> list[Any]:
    """Tensors of an argument: one, or a list of them."""
    found = [value] if value is None or isinstance(value, Base) else list(value)
    for one in found:
        if one is not None and not isinstance(one, Base):
            raise TypeError(f"autograd.grad: {name}: tensors are wanted, not {one!r:.60}")
    return found


def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
         retain_graph: bool | None = None, create_graph=False, is_grads_batched=False, allow_unused: bool | None = None,
         materialize_grads=False) -> tuple[Any, ...]:
    """The gradients of the sum of @outputs, each times its of @grad_outputs, with respect to each of @inputs, and to no other tensor. An input that no output
    depends on is an error, unless @allow_unused: None; or @materialize_grads: zeros. Gradients have graphs themselves, whatever @create_graph says, and
    graphs stay as long as they are used."""
    if is_grads_batched:
        raise NotImplementedError("autograd.grad: is_grads_batched: take func.vmap() of it")
    outputs, inputs = listed(outputs, "outputs"), listed(inputs, "inputs")
    weights = [None] * len(outputs) if grad_outputs is None else listed(grad_outputs, "grad_outputs")
    if len(weights) != len(outputs):
        raise ValueError(f"autograd.grad: {len(weights)} grad_outputs for {len(outputs)} outputs")
    used = [any(output.depends_on(one) for output in outputs) for one in inputs]
    if not all(used) and not allow_unused and not materialize_grads:
        raise InvalidError(f"autograd.grad: input {used.index(False)} is not used in the outputs, or only through what was detached: allow_unused=True gives None for it")
    total = None
    for output, weight in zip(outputs, weights):
        found = checked_all(Base.gradient(output, inputs, weight))
        total = found if total is None else [a + b for a, b in zip(total, found)]
    return tuple(one if is_used or materialize_grads else None for one, is_used in zip(total, used))


def backward(tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None,
             create_graph=False):
    """tensor.backward() of each, with its of @grad_tensors."""
    tensors = listed(tensors, "tensors")
    weights = [None] * len(tensors) if grad_tensors is None else listed(grad_tensors, "grad_tensors")
    if len(weights) != len(tensors):
        raise ValueError(f"autograd.backward: {len(weights)} grad_tensors for {len(tensors)} tensors")
    for tensor, weight in zip(tensors, weights):
        tensor.backward(weight)


class GradientHook:
    """A function that is called with the gradient of a tensor until remove(), or the end of "with".

    That is when backward() or gradient() finds it, before it is added to .grad or goes on: nothing was computed then. Of a tensor that requires_grad it is
    the gradient of all uses, of one that is computed that of uses from its first hook on. A TinyJit calls it while it records."""

    def __init__(self, tensor, hook: Callable[[Any], Any]):
        if not callable(hook):
            raise TypeError(f"register_hook: a function is wanted, not {hook!r:.60}")
        self.hook, self.tensor = hook, ref(tensor)
        self.id = call(Base.add_gradient_hook, tensor, self.run)

    def run(self, gradient, *rest):
        try:
            found = self.hook(gradient) if self.hook is not None else None
            if found is not None and not isinstance(found, Base):
                raise TypeError(f"a hook gives a tensor or None, not {found!r:.60}")
            return found
        except Exception as error:
            raise reported(error, "register_hook") from None

    def remove(self):
        tensor, self.hook = self.tensor(), None
        if tensor is not None:
            tensor.remove_gradient_hook(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


class FunctionContext:
    """What forward() leaves for backward()."""

    saved_tensors: tuple[Any, ...]
    needs_input_grad: tuple[bool, ...]

    def __init__(self):
        self.saved, self.saved_tensors, self.needs_input_grad = (), (), ()

    def save_for_backward(self, *tensors: Tensor | None):
        """Arguments, results, or tensors on the way, which are saved_tensors in backward(). None stays None."""
        self.saved = tensors

    def mark_non_differentiable(self, *tensors):
        """Nothing: backward() says what has a gradient."""

    def set_materialize_grads(self, value: bool):
        """Nothing: backward() gets zeros for what has no gradient."""


class Backward:
    """A class's backward() as the library calls it: with tensors in the place of those that forward() saw."""

    def __init__(self, owner, context, arguments):
        self.owner, self.context = owner, context
        self.is_tensor = [isinstance(one, Base) for one in arguments]
        self.n_results, self.places = 0, ()

    def note(self, results, inputs):
        """Which of inputs, results and further results each saved tensor is; gives these further ones."""
        known = {id(one): ("inputs", i) for i, one in enumerate(inputs)}
        known.update({id(one): ("outputs", i) for i, one in enumerate(results)})
        more, places = [], []
        for one in self.context.saved:
            if one is not None and id(one) not in known:
                known[id(one)] = "outputs", len(results) + len(more)
                more.append(one)
            places.append(None if one is None else known[id(one)])
        self.n_results, self.places = len(results), places
        return more

    def __call__(self, gradients, n_gradients, inputs, n_inputs, outputs, *rest):
        try:
            return self.run(gradients[:self.n_results], {"inputs": inputs, "outputs": outputs})
        except Exception as error:
            raise reported(error, f"{self.owner.__name__}.backward()") from None

    def run(self, gradients, lists):
        self.context.saved_tensors = tuple(None if one is None else lists[one[0]][one[1]] for one in self.places)
        found = self.owner.backward(self.context, *gradients)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) != len(self.is_tensor):
            raise TypeError(f"{len(found)} gradients for {len(self.is_tensor)} arguments")
        for one, is_tensor in zip(found, self.is_tensor):
            if one is not None and not (is_tensor and isinstance(one, Base)):
                raise TypeError("a gradient is a tensor, or None, for an argument that is one")
        return [one for one, is_tensor in zip(found, self.is_tensor) if is_tensor]


class Function:
    """Derive from it, write static methods forward(ctx, …) and backward(ctx, gradient, …), and call apply(…).

    backward() gives a gradient for each argument of forward(), None for what has none. It may be called with tensors that
    stand for others: what it needs of forward() is what save_for_backward() was given."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Any:
        raise NotImplementedError("a Function has a static method forward(ctx, …)")

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError("a Function has a static method backward(ctx, …)")

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        context = FunctionContext()
        context.needs_input_grad = tuple(isinstance(one, Base) and one.dtype.kind == "f" for one in arguments)
        backward, form = Backward(cls, context, arguments), []

        def forward(*inputs):
            left = iter(inputs)
            results = cls.forward(context, *(next(left) if isinstance(one, Base) else one for one in arguments))
            form.append(isinstance(results, Base))
            results = [results] if form[0] else list(results)
            return (*results, *backward.note(results, inputs))
        tensors = [one for one in arguments if isinstance(one, Base)]
        if not tensors:
            raise TypeError(f"{cls.__name__}.apply() wants a tensor among its arguments")
        traced = Traced(forward, cls.__name__)
        results = traced.unpack(traced.run(Tiny.custom_gradient, backward, None, tensors))
        return results[0] if form[0] else results[:backward.n_results]


def custom_gradient(function, backward: Callable[..., Any]) -> Callable[..., Any]:
    """@function of tensors, whose gradient is what @backward (gradients, inputs, outputs) says: lists of tensors, of which it
    gives a tensor or None for each input."""
    def pulled(gradients, n_gradients, inputs, n_inputs, outputs, *rest):
        try:
            return list(backward(gradients, inputs, outputs))
        except Exception as error:
            raise reported(error, "custom_gradient") from None

    def call(*inputs):
        traced = Traced(function, "custom_gradient")
        return traced.unpack(traced.run(Tiny.custom_gradient, pulled, None, list(inputs)))
    return call
