# SPDX-License-Identifier: MIT
"""PyTorch's newer place for spectral_norm() and weight_norm(). The tensors are called as the older ones are: weight_orig, weight_g."""
from .parameters import spectral_norm, weight_norm

__all__ = ["spectral_norm", "weight_norm"]
