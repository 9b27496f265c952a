# SPDX-License-Identifier: MIT
"""Functions of the program that a module calls: before and after forward(), and when its gradients are found."""
from __future__ import annotations

from ..autograd import custom_gradient
from ..func import filled, parts_of


class Hook:
    """A function that a module calls until remove(), or the end of "with"."""

    def __init__(self, module: Module, kind: str, hook: Callable[..., Any], prepend=False, with_kwargs=False, always=False):
        if not callable(hook):
            raise TypeError(f"a hook is a function, not {hook!r:.60}")
        if vars(module).get(kind) is None:
            object.__setattr__(module, kind, {})
        self.hooks, self.with_kwargs, self.always = vars(module)[kind], with_kwargs, always
        others = dict(self.hooks) if prepend else {}
        for one in others:
            del self.hooks[one]
        self.hooks[self] = hook
        self.hooks.update(others)

    def remove(self):
        self.hooks.pop(self, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def call_hooked(module, inputs, more):
    """forward() with all that is registered around it."""
    waiting = dict(module.post_hooks or {})
    try:
        for handle, hook in list((module.pre_hooks or {}).items()):
            found = hook(module, inputs, more) if handle.with_kwargs else hook(module, inputs)
            if found is not None and handle.with_kwargs:
                if not isinstance(found, tuple) or len(found) != 2:
                    raise TypeError(f"a forward pre-hook with_kwargs gives inputs and a dict, or None, not {found!r:.60}")
                inputs, more = found
            elif found is not None:
                inputs = found if isinstance(found, tuple) else (found,)
        if module.backward_hooks or module.backward_pre_hooks:
            result = between_boundaries(module, inputs, more)
        else:
            result = module.forward(*inputs, **more)
        for handle in list(waiting):
            hook = waiting.pop(handle)
            found = hook(module, inputs, more, result) if handle.with_kwargs else hook(module, inputs, result)
            result = result if found is None else found
        return result
    finally:  # what is still waiting here, an exception left out
        for handle, hook in waiting.items():
            if handle.always:
                hook(module, inputs, more, None) if handle.with_kwargs else hook(module, inputs, None)


def marked(values, backward):
    """@values themselves, with their gradients as @backward (gradients) says; what has none stays."""
    tensors = [one for one in parts_of(values, []) if one.dtype.kind == "f"]
    if not tensors:
        return values
    made = custom_gradient(lambda *given: given, lambda gradients, *rest: backward(list(gradients)))(*tensors)
    made = iter(made if isinstance(made, tuple) else (made,))
    return filled(values, (next(made) if one.dtype.kind == "f" else one for one in parts_of(values, [])))


def between_boundaries(module, inputs, more):
    """forward() between two places where gradients come by: those of its results, which the hooks before it may change, and those of its inputs."""
    wanted = [one.dtype.kind == "f" and one.requires_grad for one in parts_of(inputs, [])]
    came = []

    def hooked(gradients):
        """Gradients of inputs as the hooks want them."""
        for hook in list((module.backward_hooks or {}).values()):
            found = hook(module, tuple(gradients), tuple(came[-1]))
            if found is not None:
                gradients = list(found) if isinstance(found, (tuple, list)) else [found]
        return gradients

    def of_results(gradients):
        for hook in list((module.backward_pre_hooks or {}).values()):
            found = hook(module, tuple(gradients))
            if found is not None:
                gradients = list(found) if isinstance(found, (tuple, list)) else [found]
        came[:] = [gradients]
        if not any(wanted):
            hooked([None] * len(wanted))
        return gradients
    inputs = marked(inputs, hooked) if any(wanted) else inputs
    return marked(module.forward(*inputs, **more), of_results)
