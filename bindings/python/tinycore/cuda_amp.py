# SPDX-License-Identifier: MIT
"""torch.cuda.amp, the older home of amp: from tinycore.cuda.amp import autocast, GradScaler."""
from __future__ import annotations

from . import amp as amp
from .amp import GradScaler as GradScaler
from .errors import explained


class autocast(amp.autocast):
    """amp.autocast ("cuda"), whose first argument here is @enabled."""

    @explained
    def __init__(self, enabled=True, dtype=None, cache_enabled: bool = None):
        super().__init__("cuda", dtype, enabled)
