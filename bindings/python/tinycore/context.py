# SPDX-License-Identifier: MIT
"""Modes that are entered with "with" or that decorate a function."""
from __future__ import annotations

from contextlib import ContextDecorator

from .errors import call
from .library import Tiny


class Training(ContextDecorator):
    """with Tensor.train (): dropout drops, batch statistics are the batch's."""

    def __init__(self, mode=True):
        self.mode, self.before = bool(mode), []

    def __enter__(self):
        from .tensor import Tensor
        self.before.append(Tensor.training)
        Tensor.training = self.mode
        return self

    def __exit__(self, *error):
        from .tensor import Tensor
        Tensor.training = self.before.pop()


class GradMode(ContextDecorator):
    """with no_grad (): no gradient flows through what is computed on this thread."""

    enabled = False

    def __init__(self, enabled: bool = None, *, mode: bool = None):
        enabled = mode if enabled is None else enabled
        if callable(enabled):
            raise TypeError(f"write @{type(self).__name__}() before a function")
        if enabled is not None:
            self.enabled = bool(enabled)
        self.before = []

    def __enter__(self):
        self.before.append(Tiny.set_grad_enabled(self.enabled))
        return self

    def __exit__(self, *error):
        Tiny.set_grad_enabled(self.before.pop())


class no_grad(GradMode):
    """with no_grad (): no gradient flows through what is computed on this thread."""


class enable_grad(GradMode):
    """with enable_grad (): gradients flow, within no_grad()."""

    enabled = True


class set_grad_enabled(GradMode):
    """Gradients flow from now on, or do not; with "with" for a while."""

    def __init__(self, mode: bool):
        super().__init__(mode)
        self.first = [Tiny.set_grad_enabled(self.enabled)]

    def __enter__(self):
        self.before.append(self.first.pop() if self.first else Tiny.set_grad_enabled(self.enabled))
        return self


class Context(ContextDecorator):
    """with Context (DEBUG=2): settings of the library, for a while. Their names are the environment variables'. TRAINING is Tensor.train()."""

    def __init__(self, *, TRAINING: bool | None = None, **settings):
        self.settings, self.before = settings, []
        self.training = None if TRAINING is None else Training(TRAINING)

    def __enter__(self):
        before = {name: Tiny.get_setting(name) for name in self.settings}
        self.before.append(before)
        if self.training is not None:
            self.training.__enter__()
        try:
            for name, value in self.settings.items():
                call(Tiny.set_setting, name, None if value is None else str(value))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        if self.training is not None:
            self.training.__exit__()
        for name, value in self.before.pop().items():
            if value is not None or Tiny.get_setting(name) is not None:
                call(Tiny.set_setting, name, value)
