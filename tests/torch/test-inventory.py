#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""That Python has every method, layer and optimiser that users of tinygrad and PyTorch know by name, and every row of operations.pyi
a case beside PyTorch and, where it has a gradient, one whose gradient is compared with differences. What is not there is listed, of
PyTorch's names in absent.txt; an entry that is there by now fails as well.

usage: test-inventory.py FOLDER-OF-THE-TABLE. TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import fnmatch
import importlib
import inspect
import pathlib
import re
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "python"), sys.argv[1]]
sys.dont_write_bytecode = True
import checks  # noqa: E402
import numpy  # noqa: E402
import harness  # noqa: E402
import operations_table  # noqa: E402
import tinycore  # noqa: E402
import torch  # noqa: E402
from tinycore import Tensor, nn  # noqa: E402

METHODS = """
empty full zeros ones arange linspace eye const from_blob from_url empty_like full_like zeros_like ones_like const_like rand_like randn_like invalids
reshape view expand permute flip pad shrink shrink_to pad_to squeeze unsqueeze T transpose flatten unflatten rearrange split chunk meshgrid diag diagonal roll repeat repeat_interleave unfold stack cat triu tril
neg reciprocal trunc sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 log log2 log10 square clamp clip isnan isinf isfinite ceil floor round sign abs erf bitwise_not logical_not
relu relu6 sigmoid hardswish hardsigmoid hardtanh leaky_relu quick_gelu gelu swish silu elu celu selu softplus mish logsigmoid softsign
add sub mul div mod fmod pow bitwise_and bitwise_or bitwise_xor lshift rshift maximum minimum copysign logaddexp lerp where masked_fill threefry isclose eq ne lt gt le ge usum uprod alu
cast bitcast float half int bool bfloat16 double long short element_size is_floating_point nbytes
sum prod max min any all mean var var_mean std std_mean logsumexp softmax log_softmax softmin cumsum cumprod cummax cummin logcumsumexp argmax argmin allclose normalize sort argsort topk
dot matmul __matmul__ einsum linear sequential conv2d conv_transpose2d avg_pool2d max_pool2d max_unpool2d interpolate image_dot image_conv2d
__getitem__ __setitem__ gather scatter scatter_reduce masked_select nonzero one_hot
manual_seed random_bits rand randn randint normal uniform scaled_uniform glorot_uniform kaiming_uniform kaiming_normal randperm multinomial dropout
binary_crossentropy binary_crossentropy_logits sparse_categorical_crossentropy cross_entropy nll_loss layernorm batchnorm scaled_dot_product_attention
qr svd newton_schulz keccak hash to to_ shard shard_ shard_like gradient backward detach contiguous_backward grad is_param_
contiguous realize schedule_linear linear_with_vars callify assign replace clone data item tolist numpy as_param call custom_kernel decode_hevc_frame
ndim shape dtype device numel size dim requires_grad
"""
LAYERS = """BatchNorm BatchNorm2d Conv1d Conv2d ConvTranspose1d ConvTranspose2d Linear GroupNorm InstanceNorm LayerNorm LayerNorm2d
RMSNorm Embedding LSTMCell"""
MODULES = {
    "optim": "Optimizer OptimizerGroup SGD Muon LARS Adam AdamW LAMB",
    "state": "safe_load_metadata safe_load safe_save get_state_dict get_parameters load_state_dict zip_extract tar_extract torch_load",
    "datasets": "mnist cifar",
}
# Not there yet.
ABSENT = set()
# Of no use to a tensor that is no node of a graph, and what to use here.
INTERNAL = {
    "alu": "an operation by its number in tinygrad's IR: the method of its name",
    "as_param": "a parameter of a graph that is called: an argument of the function given to TinyJit, vmap or checkpoint",
    "call": "a call of such a graph: TinyJit, checkpoint",
    "callify": "the graph of a tensor as a call: TinyJit",
    "linear_with_vars": "the kernels and their variables: DEBUG=2, `tinycore explain`",
    "decode_hevc_frame": "a frame of video by a GPU's decoder: a media library, and from_dlpack",
}
# Rows whose steps differences would see, or that want f64 of every device; test_cast of autograd/gradient and the cases here have them.
ROUNDING = set("half bfloat16 float double".split())
# What calls a row of several results in cases.def.
HELPERS = {"qr": "tall_q", "svd": "svd_parts", "lu": "lu_parts", "lu_solve": "solve_by_lu", "eigh": "eigh_parts", "sort": "SORT", "topk": "TOPK", "kthvalue": "KTHVALUE", "median": "MEDIAN"}


def same(found, listed, what):
    checks.true(found == listed, f"{what}: {sorted(found - listed)} are missing, {sorted(listed - found)} are listed but not missing")


def test_names():
    absent = {name for name in METHODS.split() if not hasattr(Tensor, name)}
    absent |= {name for name in LAYERS.split() if not hasattr(nn, name)}
    for module, names in MODULES.items():
        there = importlib.import_module(f"tinycore.nn.{module}")
        absent |= {name for name in names.split() if not hasattr(there, name)}
    same(absent, ABSENT | set(INTERNAL), "names")


def names_of(module):
    """What PyTorch gives under a module's name: functions, of nn and optim classes."""
    is_wanted = inspect.isclass if module in ("nn", "optim") else lambda one: callable(one) and not inspect.isclass(one)
    there = importlib.import_module(f"torch.{module}") if module else torch
    return [name for name, one in vars(there).items() if not name.startswith("_") and is_wanted(one)]


def test_torch():
    """PyTorch's names are here, or in absent.txt with a reason."""
    rows = [line.split(": ") for line in (pathlib.Path(__file__).parent / "absent.txt").read_text().splitlines() if line[0] != "#"]
    patterns = [pattern for _, names in rows for pattern in names.split()]
    wanted = {"Tensor": [name for name in dir(torch.Tensor) if not name.startswith("_")]}
    wanted.update({module: names_of(module) for module in ("", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "linalg", "fft", "special")})
    absent, there = set(), set()
    for module, names in wanted.items():
        ours = Tensor if module == "Tensor" else importlib.import_module(f"tinycore.{module}".rstrip("."))
        there |= {name for name in names if hasattr(ours, name)}
        absent |= {(module or "torch", name) for name in names if not hasattr(ours, name)}
    checks.true(len(absent) < sum(map(len, wanted.values())) / 3, f"{len(absent)} names are absent")
    # What is missing in one module and there in another is listed with the module's name.
    texts = {(module, name): [f"{module}:{name}"] + [name] * (name not in there) for module, name in absent}
    listed = {one: [pattern for pattern in patterns for text in of if fnmatch.fnmatchcase(text, pattern)] for one, of in texts.items()}
    checks.equal({one for one, found in listed.items() if not found}, set(), "names of PyTorch that are missing and not in absent.txt")
    checks.equal(set(patterns) - {pattern for found in listed.values() for pattern in found}, set(), "patterns of absent.txt that nothing missing has")


def test_cases():
    for path in pathlib.Path(__file__).parent.glob("cases_*.py"):
        importlib.import_module(path.stem)
    rows = {operation.name for family in operations_table.read() for operation in family.operations}
    cased = {case.operation for case in harness.CASES}
    same(rows - cased, set(), "rows with cases")


def test_gradients():
    """Rows and cases of cases.def have the same names, but for what comes after another underscore."""
    text = (pathlib.Path(__file__).parents[1] / "unit" / "tensor" / "cases.def").read_text()
    calls = dict(re.findall(r"^(?:CASE|FORMULA) \((\w+), (.*)$", text, re.M))
    checks.equal(len(calls), len(re.findall(r"^[A-Z]+ \(", text, re.M)), "cases, each of another name")
    rows = {operation.name for family in operations_table.read() for operation in family.operations
            if operation.gradient != "none"}

    def has_case(row):
        called = re.compile(rf"T \({row}\)|^{row}, |\b{HELPERS.get(row, row)}\b")
        return any((name == row or name.startswith(row + "_")) and called.search(call) for name, call in calls.items())

    same({row for row in rows if not has_case(row)}, ROUNDING, "rows with gradients")


def test_comparison():
    """What the cases call equal: small numbers count, beside large ones as parts of these."""
    for wanted, found, good in (([1e-4, 2e-4], [1.0001e-4, 2e-4], False), ([1e-4, 2e-4], [1.0000001e-4, 2e-4], True),
                                ([1.0, 1e-5], [1.0, 1.005e-5], True), ([1.0, 1e-5], [1.0, 1.1e-5], False), ([5.0], [5.00001], False),
                                ([1e9, 1.0], [1e9, 1.00001], False), ([float("nan"), 0.0], [float("nan"), 0.0], True), ([0.0], [1e-9], False)):
        why = harness.differs(numpy.array(found), numpy.array(wanted), harness.FORWARD)
        checks.true((why is None) == good, f"{found} beside {wanted}: {why}")


checks.run(globals())
