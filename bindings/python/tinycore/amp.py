# SPDX-License-Identifier: MIT
"""Training in narrow floats: autocast, and GradScaler, which makes losses larger, as torch.amp has them."""
from __future__ import annotations

from contextlib import ContextDecorator

from .dtypes import as_dtype, by_value, dtypes
from .errors import call, checked, explained
from .jit import state
from .library import Tiny
from .tensor import Base


class autocast(ContextDecorator):
    """with autocast ("cpu", dtype=bfloat16): products of matrices and convolutions take float32 as @dtype and give that; sums, powers, norms and losses
    take narrower floats as float32; all else goes by the dtypes of its arguments. On this thread, whatever device it is for: @device_type says which
    dtype it is where none is given, float16 of "cuda", else bfloat16.

    Leave it before backward(): gradients go the same way back, and those of float32 parameters are float32."""

    @explained
    def __init__(self, device_type="cpu", dtype=None, enabled=True, cache_enabled: bool = None):
        name = dtypes.float16 if str(device_type).split(":")[0].lower() == "cuda" else dtypes.bfloat16
        self.dtype, self.enabled, self.before = as_dtype(name if dtype is None else dtype), bool(enabled), []
        if self.dtype not in (dtypes.float16, dtypes.bfloat16):
            raise ValueError(f"autocast: dtype: float16 or bfloat16 is wanted, not {self.dtype.name}")

    def __enter__(self):
        self.before.append(state.autocast)
        state.autocast = int(self.dtype.value) if self.enabled else int(Tiny.DType.VOID)
        call(Tiny.set_autocast, state.autocast)
        return self

    def __exit__(self, *error):
        state.autocast = self.before.pop()
        call(Tiny.set_autocast, state.autocast)


def is_autocast_enabled(device_type: str = None) -> bool:
    """True in an autocast() of this thread."""
    return Tiny.get_autocast() != Tiny.DType.VOID


def get_autocast_dtype(device_type: str = None) -> DType | None:
    """The dtype of the autocast() in which this thread computes, or None."""
    return by_value.get(int(Tiny.get_autocast()))


class GradScaler:
    """A scale for losses that grows while gradients are finite and shrinks when one is not; such a step changes nothing."""

    @explained
    def __init__(self, device: str | float = None, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        if isinstance(device, (int, float)):  # the older form, GradScaler (init_scale)
            device, init_scale = None, device
        self.enabled = bool(enabled)
        self.growth_factor, self.backoff_factor, self.growth_interval = float(growth_factor), float(backoff_factor), growth_interval
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
        """Moves the scale, after the steps of all optimisers; or makes it @new_scale."""
        if not self.enabled:
            return
        call(self.handle.update)
        if new_scale is not None:
            self.load(float(new_scale), call(self.handle.get_n_good)[1])

    def get_scale(self) -> float:
        """The scale as it is now."""
        return call(self.handle.get_scale)[1] if self.enabled else 1.0

    def get_growth_factor(self) -> float:
        return self.growth_factor

    def get_backoff_factor(self) -> float:
        return self.backoff_factor

    def get_growth_interval(self) -> int:
        return self.growth_interval

    def load(self, scale: float, n_good: int):
        call(self.handle.load, scale, n_good, self.growth_factor, self.backoff_factor, self.growth_interval)

    def state_dict(self) -> dict[str, Any]:
        """All that it goes on by, under PyTorch's names; of one that is not enabled nothing."""
        if not self.enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self.growth_factor, "backoff_factor": self.backoff_factor,
                "growth_interval": self.growth_interval, "_growth_tracker": call(self.handle.get_n_good)[1]}

    @explained
    def load_state_dict(self, state_dict):
        """Goes on as the scaler of which this is the state, also in functions recorded before, where the factors and the interval are the same."""
        if not self.enabled:
            return
        missing = [name for name in ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker") if name not in state_dict]
        if missing:
            raise ValueError(f"GradScaler: load_state_dict: missing {', '.join(missing)}: a state of a scaler that was enabled is wanted")
        before = self.growth_factor, self.backoff_factor, self.growth_interval
        self.growth_factor, self.backoff_factor = float(state_dict["growth_factor"]), float(state_dict["backoff_factor"])
        self.growth_interval = int(state_dict["growth_interval"])
        try:
            self.load(float(state_dict["scale"]), int(state_dict["_growth_tracker"]))
        except BaseException:
            self.growth_factor, self.backoff_factor, self.growth_interval = before
            raise
