# SPDX-License-Identifier: MIT
"""Methods of tensors as functions: import tinycore.nn.functional as F; F.relu (x)."""
from ..tensor import Tensor

NAMES = {"binary_cross_entropy": "binary_crossentropy", "binary_cross_entropy_with_logits": "binary_crossentropy_logits"}


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability p where @training says so."""
    return input.dropout(p, training=training)


def embedding(input, weight):
    """Rows of a table at integer positions."""
    return weight.index_select(0, input)


def __getattr__(name):
    found = getattr(Tensor, NAMES.get(name, name), None) if not name.startswith("__") else None
    if found is None:
        raise AttributeError(f"tensors have no method {name}")
    return found
