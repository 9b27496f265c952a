#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""That Python has every method, layer and optimiser that users of tinygrad know by name, and every row of operations.pyi a
case beside PyTorch. What is not there is listed; an entry that is there by now fails as well.

usage: test-inventory.py FOLDER-OF-THE-TABLE. TAP. Run in the build's environment, by the interpreter that has PyGObject."""
import importlib
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "python"), sys.argv[1]]
sys.dont_write_bytecode = True
import checks  # noqa: E402
import harness  # noqa: E402
import operations_table  # noqa: E402
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
# Not there yet, or of no use to a tensor that is no node of a graph.
ABSENT = set("""
const from_blob from_url const_like invalids threefry usum uprod alu image_dot image_conv2d layernorm batchnorm svd keccak hash to_ shard shard_ shard_like is_param_ schedule_linear linear_with_vars callify as_param call custom_kernel decode_hevc_frame
OptimizerGroup safe_load_metadata zip_extract tar_extract torch_load cifar""".split())
# Rows without a case beside PyTorch: numbers by chance, and what PyTorch has not; other tests have them.
UNCASED = set("""
add_number mul_number bfloat16 bitcast cast newton_schulz
arange eye full full_like linspace ones ones_like zeros zeros_like
bernoulli dropout glorot_uniform kaiming_normal kaiming_uniform multinomial normal rand rand_like randint randn randn_like random_bits
randperm scaled_uniform uniform shorten""".split())


def same(found, listed, what):
    checks.true(found == listed, f"{what}: {sorted(found - listed)} are missing, {sorted(listed - found)} are listed but not missing")


def test_names():
    absent = {name for name in METHODS.split() if not hasattr(Tensor, name)}
    absent |= {name for name in LAYERS.split() if not hasattr(nn, name)}
    for module, names in MODULES.items():
        there = importlib.import_module(f"tinycore.nn.{module}")
        absent |= {name for name in names.split() if not hasattr(there, name)}
    same(absent, ABSENT, "names")


def test_cases():
    for path in pathlib.Path(__file__).parent.glob("cases_*.py"):
        importlib.import_module(path.stem)
    rows = {operation.name for family in operations_table.read() for operation in family.operations}
    cased = {case.operation for case in harness.CASES}
    same(rows - cased, UNCASED, "rows with cases")


checks.run(globals())
