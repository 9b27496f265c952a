# SPDX-License-Identifier: MIT
"""GradScaler: losses made larger for narrow formats, as torch.cuda.amp has it."""
from __future__ import annotations

from .errors import call, checked, explained
from .library import Tiny
from .tensor import Base


class GradScaler:
    """A scale for losses that grows while gradients are finite and shrinks when one is not; such a step changes nothing."""

    @explained
    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        self.enabled = bool(enabled)
        self.handle = Tiny.GradScaler.new(init_scale, growth_factor, backoff_factor, growth_interval)
        if self.enabled:
            self.get_scale()  # says what is wrong with the numbers

    def is_enabled(self) -> bool:
        return self.enabled

    def scale(self, outputs: Any) -> Any:
        """A loss times the scale; of a list or tuple each."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, Base):
            return checked(self.handle.scale(outputs))
        return type(outputs)(map(self.scale, outputs))

    def unscale_(self, optimizer):
        """Gradients without the scale, to be clipped before step()."""
        if self.enabled:
            call(self.handle.unscale, optimizer.handle)

    def step(self, optimizer):
        """The optimiser's step, unless one of its gradients is not finite. The scale stays until update()."""
        if self.enabled:
            call(self.handle.step, optimizer.handle, [])
        else:
            optimizer.step()

    def update(self, new_scale: float = None):
        """Moves the scale, after the steps of all optimisers."""
        if new_scale is not None:
            raise NotImplementedError("GradScaler: the scale follows from the gradients")
        if self.enabled:
            call(self.handle.update)

    def get_scale(self) -> float:
        """The scale as it is now."""
        return call(self.handle.get_scale)[1] if self.enabled else 1.0
