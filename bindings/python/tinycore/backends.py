# SPDX-License-Identifier: MIT
"""PyTorch's backends, as programs ask and set them: they are not there, and settings of them change nothing. Devices are Device's."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

# Members of each beside is_available() and is_built(), both False.
ROWS: dict[str, dict[str, Any]] = {
    "cudnn": {"benchmark": False, "deterministic": True, "enabled": False, "allow_tf32": False}, "cuda": {}, "mps": {}, "mkldnn": {"enabled": False}, "mkl": {},
    "openmp": {}, "opt_einsum": {"enabled": False},
}


def no(*arguments: Any, **more: Any) -> bool:
    return False


cudnn: Any
cuda: Any
mps: Any
mkldnn: Any
mkl: Any
openmp: Any
opt_einsum: Any
for name, row in ROWS.items():  # modules, so that a program can import tinycore.backends.cudnn
    module = ModuleType(f"{__name__}.{name}")
    vars(module).update(row, is_available=no, is_built=no)
    globals()[name] = sys.modules[module.__name__] = module
cuda.matmul = ModuleType("matmul")
cuda.matmul.allow_tf32 = cuda.matmul.allow_fp16_reduced_precision_reduction = False
for name in ("flash", "math", "mem_efficient", "cudnn"):
    setattr(cuda, f"enable_{name}_sdp", no)
__path__: list[str] = []
del name, row, module
