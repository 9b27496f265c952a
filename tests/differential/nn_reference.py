# SPDX-License-Identifier: MIT
"""What tests of layers and optimisers share: NumPy, PyTorch and our tensors on the same numbers."""
import sys
import warnings

try:
    import gi
    import numpy as np
    import torch
    gi.require_version("Tiny", "1.0")
    from gi.repository import GLib, Tiny
except (ImportError, ValueError) as why:
    print(f"{sys.executable}: {why} (packages python3-gi, python3-numpy, python3-torch; a build with introspection)")
    sys.exit(77)

warnings.simplefilter("ignore")  # PyTorch warns of its own ways
torch.set_num_threads(1)
torch.manual_seed(3)
generator = np.random.default_rng(5)
DTYPES = {"float32": Tiny.DType.F32, "float64": Tiny.DType.F64, "int64": Tiny.DType.I64, "int32": Tiny.DType.I32,
          "bool": Tiny.DType.BOOL, "uint8": Tiny.DType.U8}


def random(shape):
    return generator.normal(size=shape).astype(np.float32)


def to_tiny(array):
    if array is None:
        return None
    array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
    return Tiny.Tensor.new_from_data(None, DTYPES[array.dtype.name], list(array.shape), array.tobytes())


def to_numpy(tensor):
    name = next(name for name, dtype in DTYPES.items() if dtype == tensor.get_dtype())
    return np.frombuffer(tensor.get_data().get_data() or b"", name).reshape(tensor.get_shape() or [])


def mask(kind, shape):
    """For a batch of (B, T, …) and two heads."""
    b, t = shape[:2]
    if kind == "causal":
        return np.triu(np.ones((t, t), bool), 1)
    if kind == "float":
        return random((t, t))
    if kind in ("none", "padding"):
        padded = np.arange(t) >= np.arange(1, b + 1)[:, None]
        return padded if kind == "padding" else None
    heads = generator.random((2 * b, t, t)) < 0.3
    heads[:, :, 0] = False  # nobody is kept from everything
    return heads


def spread(module):
    """Moves all that begins at 0 or 1, so that it is seen."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))


def copy_state(ours, theirs):
    state = theirs.state_dict()
    assert sorted(state) == sorted(ours.get_state_dict()), (sorted(state), sorted(ours.get_state_dict()))
    for path, tensor in ours.get_state_dict().items():
        assert tuple(tensor.get_shape() or ()) == tuple(state[path].shape), path
    assert [path for path, _ in theirs.named_parameters()] == [
        path for path in ours.get_parameter_names()] or len(state) > 8, (ours.get_parameter_names())
    ours.load_state_dict({path: to_tiny(value.numpy()) for path, value in state.items()}, True)


def close(name, mine, other, rtol, atol):
    mine = to_numpy(mine) if not isinstance(mine, np.ndarray) else mine
    other = other.detach().numpy() if isinstance(other, torch.Tensor) else other
    assert mine.shape == other.shape, (name, mine.shape, other.shape)
    if not np.allclose(mine, other, rtol, atol):
        worst = np.abs(mine - other).max()
        raise AssertionError(f"{name}: off by {worst}\n{mine}\nPyTorch's:\n{other}")


def close_sums(name, pairs, n_terms):
    """@pairs of names, ours and PyTorch's, made of sums that have @n_terms terms in all.

    Rounding each of n sums and products by up to u = 2^-24 moves a result by no more than λ √n u of the terms' sizes, but
    with a probability of 2 exp (-λ²/2) (Higham and Mary, 2019, SIAM J. Sci. Comput. 41). λ is 6. Both sides round, which
    makes it √2 of that. Terms may cancel in one result and not in the next: their size is that of the largest result."""
    size = max(float(other.detach().abs().max()) for _, _, other in pairs if other.numel())
    bound = 2 ** 0.5 * 6 * n_terms ** 0.5 * 2.0 ** -24 * size
    for what, mine, other in pairs:
        close(f"{name}: {what}", mine, other, 0, bound)


def check_call(name, ours, theirs, arrays, gradients):
    """All results, and the gradients of a weighted sum of them for all inputs and parameters."""
    mine = [to_tiny(array) for array in arrays]
    others = [None if array is None else torch.tensor(array) for array in arrays]
    for tensor, other in zip(mine, others):
        if other is not None and other.dtype == torch.float32 and gradients:
            tensor.set_requires_grad(True)
            other.requires_grad_(True)
    results = ours.call(mine)
    expected = theirs(*others)
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    assert len(results) == len(expected) or "attention" in str(type(theirs)).lower(), (name, len(results), len(expected))
    results = results[:len(expected)]
    loss, other_loss = None, 0
    for result, other in zip(results, expected):
        weights = random(tuple(other.shape))
        part = result.mul(to_tiny(weights)).sum(None, False) if other.ndim == 0 else result.mul(
            to_tiny(weights)).sum(list(range(other.ndim)), False)
        loss = part if loss is None else loss.add(part)
        other_loss = other_loss + (other * torch.tensor(weights)).sum()
    if gradients and other_loss.requires_grad:
        loss.backward()
        other_loss.backward()
    parameters = list(theirs.named_parameters())
    n_terms = sum(array.size for array in arrays if array is not None) + sum(p.numel() for _, p in parameters)
    close_sums(name, [(f"result {i}", *pair) for i, pair in enumerate(zip(results, expected))], n_terms)
    if not (gradients and other_loss.requires_grad):
        return
    grads = [(f"gradient of input {i}", tensor.get_grad(), other.grad) for i, (tensor, other) in enumerate(zip(mine, others))
             if other is not None and other.grad is not None]
    grads += [(f"gradient of {path}", ours.get_parameter(path).get_grad(), other.grad) for path, other in parameters]
    close_sums(name, grads, n_terms)
    ours.zero_grad()
    theirs.zero_grad()


def check_buffers(name, ours, theirs):
    for path, other in theirs.named_buffers():
        close(f"{name}: {path}", ours.get_buffer(path), other, 1e-5, 1e-6)


def raises(text, function, *arguments):
    try:
        function(*arguments)
    except GLib.Error as error:
        assert text in error.message, error.message
        assert error.matches(Tiny.error_quark(), Tiny.Error.INVALID), error
    else:
        raise AssertionError(f"no error with “{text}”")


class Flat(torch.nn.Module):
    """A recurrent layer whose states are plain inputs and results."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        for name, parameter in inner.named_parameters():
            self.register_parameter(name, parameter)
        del self._modules["inner"]
        self.__dict__["inner"] = inner

    def forward(self, x, *states):
        given = [] if not states else [states if "LSTM" in type(self.inner).__name__ else states[0]]
        result = self.inner(x, *given)
        if isinstance(result, torch.Tensor):
            return [result]
        return [result[0], *result[1]] if isinstance(result[1], tuple) else list(result)


class Attention(torch.nn.Module):
    """Multi-head attention with the mask as a fourth input."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def state_dict(self, *arguments, **names):
        return self.inner.state_dict()

    def named_parameters(self, *arguments, **names):
        return self.inner.named_parameters()

    def forward(self, q, k, v, mask=None, padding=None):
        return self.inner(q, k, v, attn_mask=mask, key_padding_mask=padding)


class LayerNorm2d(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(n)), torch.nn.Parameter(torch.zeros(n))

    def forward(self, x):
        return torch.nn.functional.layer_norm(x.permute(0, 2, 3, 1), self.weight.shape, self.weight, self.bias).permute(0, 3, 1, 2)


class QuickGELU(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class RMSNorm(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight
