# SPDX-License-Identifier: MIT
"""Changes of gradients and of modules' tensors, and sequences of several lengths (rnn)."""
from . import parametrizations, rnn
from .parameters import (clip_grad_norm_, clip_grad_value_, parameters_to_vector, remove_spectral_norm, remove_weight_norm, spectral_norm,
                         vector_to_parameters, weight_norm)

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "parametrizations", "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm",
           "vector_to_parameters", "weight_norm"]
