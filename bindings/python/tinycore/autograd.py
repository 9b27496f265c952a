# SPDX-License-Identifier: MIT
"""grad() of tensors, hooks of gradients, and Function: an operation whose gradient a program writes itself, under torch.autograd's names."""
from __future__ import annotations

from weakref import WeakMethod, ref

from .context import GradMode, enable_grad as enable_grad, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from .convert import checked_all
from .errors import InvalidError, call, heard
from .func import Traced, derived, results_list
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
         retain_graph: bool | None = None, create_graph=False, only_inputs=True, allow_unused: bool | None = None, is_grads_batched=False,
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
             create_graph=False, inputs: Tensor | Sequence[Tensor] | None = None):
    """tensor.backward() of each, with its of @grad_tensors."""
    tensors = listed(tensors, "tensors")
    weights = [None] * len(tensors) if grad_tensors is None else listed(grad_tensors, "grad_tensors")
    if len(weights) != len(tensors):
        raise ValueError(f"autograd.backward: {len(weights)} grad_tensors for {len(tensors)} tensors")
    for tensor, weight in zip(tensors, weights):
        tensor.backward(weight, inputs=inputs)


class GradientHook:
    """A function that is called with the gradient of a tensor until remove(), or the end of "with".

    That is when backward() or gradient() finds it, before it is added to .grad or goes on: nothing was computed then. Of a tensor that requires_grad it is
    the gradient of all uses, of one that is computed that of uses from its first hook on. A TinyJit calls it while it records. What it raises is raised by
    backward() or gradient() as it is.

    A hook goes with its tensor. It may refer to a tensor that requires_grad and is held by Python alone: gc.collect() finds the cycle. It finds none through the
    library: a hook that refers to its own tensor where that is computed, or a parameter of a layer such as nn.Linear, keeps both until remove()."""

    def __init__(self, tensor, hook: Callable[[Any], Any]):
        if not callable(hook):
            raise TypeError(f"register_hook: a function is wanted, not {hook!r:.60}")
        self.hook, self.tensor = hook, ref(tensor)
        run, own = self.run, None
        if tensor.is_leaf:  # which goes together with its hooks: where Python holds them, its gc sees what they refer to
            own, weak = vars(tensor).setdefault("gradient_hooks", {}), WeakMethod(self.run)
            run = lambda *arguments: weak()(*arguments)  # noqa: E731
        self.id = call(Base.add_gradient_hook, tensor, heard(run, "register_hook"))
        if own is not None:
            own[self.id] = self

    def run(self, gradient, *rest):
        found = self.hook(gradient) if self.hook is not None else None
        if found is not None and not isinstance(found, Base):
            raise TypeError(f"register_hook: a hook gives a tensor or None, not {found!r:.60}")
        return found

    def remove(self):
        tensor, self.hook = self.tensor(), None
        if tensor is not None:
            tensor.remove_gradient_hook(self.id)
            vars(tensor).get("gradient_hooks", {}).pop(self.id, None)

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
        self.context.saved = ()  # the graph has them: whoever holds them here keeps it alive, and it this
        return more

    def __call__(self, gradients, n_gradients, inputs, n_inputs, outputs, *rest):
        lists, name = {"inputs": inputs, "outputs": outputs}, f"{self.owner.__name__}.backward()"
        self.context.saved_tensors = tuple(None if one is None else lists[one[0]][one[1]] for one in self.places)
        try:
            found = self.owner.backward(self.context, *gradients[:self.n_results])
        finally:
            self.context.saved_tensors = ()
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) != len(self.is_tensor):
            raise InvalidError(f"{name}: {len(found)} gradients for {len(self.is_tensor)} arguments")
        for one, is_tensor in zip(found, self.is_tensor):
            if one is not None and not (is_tensor and isinstance(one, Base)):
                raise TypeError(f"{name}: a gradient is a tensor, or None, for an argument that is one, not {one!r:.60}")
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
            results = results_list(results, f"{cls.__name__}.forward()")
            return (*results, *backward.note(results, inputs))
        tensors = [one for one in arguments if isinstance(one, Base)]
        if not tensors:
            raise TypeError(f"{cls.__name__}.apply() wants a tensor among its arguments")
        traced = Traced(forward, cls.__name__, tensors)
        results = traced.unpack(traced.run(Tiny.custom_gradient, heard(backward, f"{cls.__name__}.backward()"), None, tensors))
        return results[0] if form[0] else results[:backward.n_results]


def custom_gradient(function, backward: Callable[..., Any]) -> Callable[..., Any]:
    """@function of tensors, whose gradient is what @backward (gradients, inputs, outputs) says: lists of tensors, of which it
    gives a tensor or None for each input."""
    def pulled(gradients, n_gradients, inputs, n_inputs, outputs, *rest):
        found = backward(gradients, inputs, outputs)
        if not isinstance(found, (list, tuple)):
            raise TypeError(f"custom_gradient: backward: a list of tensors or None is wanted, one for each input, not {found!r:.60}")
        return list(found)

    def call(*inputs):
        traced = Traced(function, "custom_gradient", list(inputs))
        return traced.unpack(traced.run(Tiny.custom_gradient, heard(pulled, "custom_gradient"), None, list(inputs)))
    return call


# ---- PyTorch's older names, and its checks ----
def Variable(data: Tensor, requires_grad=False, volatile=False) -> Tensor:
    """@data itself, which requires a gradient where that is asked for: tensors do all that Variables did."""
    return data.requires_grad_() if requires_grad else data


class detect_anomaly(GradMode):
    """Nothing: errors say where they come from, and TINY_CHECK=1 looks at positions."""

    enabled = True

    def __init__(self, mode=True, check_nan=True):
        super().__init__()


set_detect_anomaly = detect_anomaly


def gradcheck(func, inputs: Tensor | Sequence[Tensor], eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True) -> bool:
    """True if the gradients of @func at @inputs, float64, are those of central differences at distances of @eps; else an error, or False."""
    inputs = [inputs] if isinstance(inputs, Base) else list(inputs)
    wanted = [i for i, one in enumerate(inputs) if isinstance(one, Base) and one.dtype.kind == "f" and not one.is_frozen and one.requires_grad]
    for i in wanted:
        def of(x, i=i):
            return results_list(func(*inputs[:i], x, *inputs[i + 1:]), "gradcheck")
        found = derived(lambda x: tuple(of(x)), "gradcheck", Tiny.jacobian, 0)(inputs[i].detach())
        at, n = inputs[i].detach(), inputs[i].numel()
        for k in range(n):
            step = (at.flatten().arange(n) == k).reshape(at.shape).cast(at.dtype) * eps
            for row, high, low in zip(found, of(at + step), of(at - step)):
                own = row.reshape(*high.shape, n)[..., k]
                if not own.allclose((high - low) / (2 * eps), rtol, atol):
                    if raise_exception:
                        raise InvalidError(f"gradcheck: the gradient by element {k} of input {i} is {own.tolist()!r:.80}, differences say {((high - low) / (2 * eps)).tolist()!r:.80}")
                    return False
    return True


class functional:
    """PyTorch's autograd.functional: derivatives of functions of one tensor or of a tuple of them."""

    @staticmethod
    def jacobian(func, inputs: Tensor | Sequence[Tensor], create_graph=False, strict=False, vectorize=False, strategy="reverse-mode") -> Any:
        return functional.of_all(Tiny.jacobian, func, inputs)

    @staticmethod
    def hessian(func, inputs: Tensor | Sequence[Tensor], create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode") -> Any:
        return functional.of_all(Tiny.hessian, func, inputs)

    @staticmethod
    def of_all(call, func, inputs):
        is_one = isinstance(inputs, Base)
        return derived(func, "autograd.functional", call, 0 if is_one else range(len(inputs)))(*([inputs] if is_one else inputs))
