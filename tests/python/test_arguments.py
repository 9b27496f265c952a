#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Layers, functions, optimisers, schedules, loaders, captured functions and transforms, with one argument replaced by what is none: it
works, or there is an exception that says which function, or which argument, was not content.

TAP. usage: test_arguments.py. Run in the build's environment, by the interpreter that has PyGObject."""
import math

import checks
from tinycore import Tensor, TinyJit, func, nn, optim
from tinycore.nn import functional as F
from tinycore.utils.data import DataLoader, Subset, TensorDataset, random_split

NONSENSE = [None, "no", object(), [None], {}, b"x", 1j, math.nan, -1, 1 << 70]
ERRORS = (TypeError, ValueError, IndexError, OverflowError, LookupError, NotImplementedError, MemoryError)
# What Python itself says where something of ours was not looked at.
SLIPS = ("has no attribute", "object is not callable", "not subscriptable", "not iterable", "unsupported operand", "unpack", "not supported between",
         "unhashable", "has no len()", "Argument ", "Expected ", "Must be ", "constructor", "object of type")


def weight():
    return Tensor.ones(3, 3, requires_grad=True)


def sgd():
    parameter = weight()
    parameter.sum().backward()
    return optim.SGD([parameter], 0.1, 0.9)


def x():
    return Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def labels():
    return Tensor([0, 2])


def image():
    return Tensor.ones(1, 2, 4, 4)


def square(one):
    return (one * one).sum()


def first_batch(**settings):
    return next(iter(DataLoader(TensorDataset(x(), labels()), **settings)), None)


# (what is called, its arguments by name)
CALLS = [
    (nn.Linear, {"in_features": 3, "out_features": 2, "bias": True}), (nn.Embedding, {"num_embeddings": 5, "embedding_dim": 3}),
    (nn.Conv2d, {"in_channels": 2, "out_channels": 2, "kernel_size": 2, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}),
    (nn.ConvTranspose2d, {"in_channels": 2, "out_channels": 2, "kernel_size": 2, "stride": 1, "output_padding": 0}),
    (nn.BatchNorm2d, {"num_features": 2, "eps": 1e-5, "momentum": 0.1}), (nn.LayerNorm, {"normalized_shape": 3, "eps": 1e-5}),
    (nn.GroupNorm, {"num_groups": 1, "num_channels": 2, "eps": 1e-5}), (nn.RMSNorm, {"normalized_shape": 3}), (nn.Dropout, {"p": 0.5}),
    (nn.LSTM, {"input_size": 3, "hidden_size": 2, "num_layers": 1, "dropout": 0.0}), (nn.GRUCell, {"input_size": 3, "hidden_size": 2}),
    (nn.MultiheadAttention, {"embed_dim": 4, "num_heads": 2, "dropout": 0.0}), (nn.PReLU, {"num_parameters": 1, "init": 0.25}),
    (nn.TransformerEncoderLayer, {"d_model": 4, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0, "activation": "relu"}),
    (nn.Flatten, {"start_dim": 1, "end_dim": -1}), (nn.MaxPool2d, {"kernel_size": 2, "stride": 2}), (nn.CrossEntropyLoss, {"reduction": "mean"}),
    (lambda input: nn.Linear(3, 2)(input), {"input": x()}), (lambda input: nn.LSTM(3, 2)(input), {"input": x()}),
    (lambda input: nn.BatchNorm2d(2)(input), {"input": image()}), (lambda input: nn.Embedding(5, 3)(input), {"input": labels()}),
    (lambda input: nn.Conv2d(2, 2, 2)(input), {"input": image()}), (lambda input: nn.CrossEntropyLoss()(input, labels()), {"input": x()}),
    (lambda input: nn.Sequential(nn.Linear(3, 2), nn.ReLU())(input), {"input": x()}), (lambda module: nn.Sequential(module)(x()), {"module": nn.ReLU()}),
    (lambda state_dict: nn.Linear(3, 2).load_state_dict(state_dict), {"state_dict": nn.Linear(3, 2).state_dict()}),
    (F.linear, {"input": x(), "weight": weight(), "bias": None}), (F.relu, {"input": x()}), (F.dropout, {"input": x(), "p": 0.5}),
    (F.softmax, {"input": x(), "dim": 1}), (F.cross_entropy, {"input": x(), "target": labels(), "reduction": "mean"}),
    (F.mse_loss, {"input": x(), "target": x()}), (F.embedding, {"input": labels(), "weight": weight()}),
    (F.layer_norm, {"input": x(), "normalized_shape": (3,)}), (F.conv2d, {"input": image(), "weight": Tensor.ones(2, 2, 2, 2), "stride": 1}),
    (F.pad, {"input": x(), "pad": (1, 1)}), (F.one_hot, {"input": labels(), "num_classes": 3}), (F.pairwise_distance, {"x1": x(), "x2": x(), "p": 2.0}),
    (F.gumbel_softmax, {"logits": x(), "tau": 1.0, "dim": -1}), (F.tanhshrink, {"input": x()}), (F.alpha_dropout, {"input": x(), "p": 0.5, "training": True}),
    (F.dropout2d, {"input": image(), "p": 0.5}), (F.bilinear, {"input1": x(), "input2": x(), "weight": Tensor.ones(1, 3, 3)}),
    (optim.SGD, {"params": [weight()], "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "nesterov": False}),
    (optim.Adam, {"params": [weight()], "lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8}), (optim.AdamW, {"params": [weight()], "weight_decay": 0.1}),
    (optim.Muon, {"params": [weight()], "lr": 0.1}), (optim.RMSprop, {"params": [weight()], "alpha": 0.9}), (optim.LARS, {"params": [weight()], "lr": 0.1}),
    (lambda param_group: sgd().add_param_group(param_group), {"param_group": {"params": [weight()]}}),
    (lambda state_dict: sgd().load_state_dict(state_dict), {"state_dict": sgd().state_dict()}),
    (optim.lr_scheduler.StepLR, {"optimizer": sgd(), "step_size": 2, "gamma": 0.5}),
    (optim.lr_scheduler.MultiStepLR, {"optimizer": sgd(), "milestones": [2, 4], "gamma": 0.5}),
    (optim.lr_scheduler.ExponentialLR, {"optimizer": sgd(), "gamma": 0.5}), (optim.lr_scheduler.LambdaLR, {"optimizer": sgd(), "lr_lambda": lambda i: 1.0}),
    (optim.lr_scheduler.CosineAnnealingLR, {"optimizer": sgd(), "T_max": 3, "eta_min": 0.0}),
    (optim.lr_scheduler.OneCycleLR, {"optimizer": sgd(), "max_lr": 0.5, "total_steps": 5, "pct_start": 0.3}),
    (optim.lr_scheduler.ReduceLROnPlateau, {"optimizer": sgd(), "mode": "min", "factor": 0.5, "patience": 1}),
    (optim.lr_scheduler.SequentialLR, {"optimizer": sgd(), "schedulers": [], "milestones": [2]}), (optim.lr_scheduler.ChainedScheduler, {"schedulers": []}),
    (lambda metrics: optim.lr_scheduler.ReduceLROnPlateau(sgd()).step(metrics), {"metrics": 1.0}),
    (nn.utils.clip_grad_norm_, {"parameters": [weight()], "max_norm": 1.0, "norm_type": 2.0}),
    (nn.utils.clip_grad_value_, {"parameters": [weight()], "clip_value": 1.0}),
    (first_batch, {"batch_size": 1, "shuffle": False, "sampler": [0, 1], "num_workers": 0, "collate_fn": lambda rows: rows, "drop_last": False, "seed": 1}),
    (lambda dataset: next(iter(DataLoader(dataset)), None), {"dataset": [1.0, 2.0]}), (lambda tensors: TensorDataset(tensors), {"tensors": x()}),
    (Subset, {"dataset": [1, 2], "indices": [0]}), (random_split, {"dataset": [1, 2], "lengths": [1, 1]}),
    (TinyJit, {"function": square}), (lambda input: TinyJit(lambda one: Tensor(1.0))(input), {"input": x()}),
    (lambda function: func.vmap(function)(x()), {"function": square}), (lambda in_dims: func.vmap(square, in_dims)(x()), {"in_dims": 0}),
    (lambda out_dims: func.vmap(square, 0, out_dims)(x()), {"out_dims": 0}), (lambda randomness: func.vmap(square, randomness=randomness)(x()), {"randomness": "same"}),
    (func.jvp, {"func": square, "primals": (x(),), "tangents": (x(),)}), (lambda function: func.grad(function)(x()), {"function": square}),
    (lambda input: func.grad(square)(input), {"input": x()}), (lambda function: func.vjp(function, x())[1](Tensor(1.0)), {"function": square}),
    (lambda gradient: func.vjp(square, x())[1](gradient), {"gradient": Tensor(1.0)}), (lambda function: func.jacrev(function)(x()), {"function": square}),
    (lambda function: func.jacfwd(function)(x()), {"function": square}), (lambda function: func.hessian(function)(x()), {"function": square}),
    (lambda input: func.hessian(square)(input), {"input": x()}), (lambda function: func.checkpoint(function, x()), {"function": square}),
    (lambda input: func.jacrev(square)(input), {"input": x()}), (lambda input: func.vmap(square)(input), {"input": x()}),
]


def name_of(function):
    return getattr(function, "__name__", str(function))


def test_arguments():
    n_raised = n_worked = 0
    slips = []
    for function, arguments in CALLS:
        for name in arguments:
            for value in NONSENSE:
                try:
                    function(**{**arguments, name: value})
                    n_worked += 1
                except ERRORS as error:
                    n_raised += 1
                    says = name in str(error) or ": " in str(error)
                    if not says or any(slip in str(error) for slip in SLIPS):
                        slips.append(f"{name_of(function)} ({name}={value!r:.30}): {type(error).__name__}: {error}")
                except Exception as error:
                    slips.append(f"{name_of(function)} ({name}={value!r:.30}): {type(error).__name__}: {error}")
    print(f"# {n_raised} calls refused, {n_worked} had an answer")
    checks.true(n_raised > 1000 and n_worked > 20, "hardly anything is tested")
    for one in slips[:200]:
        print("#", one[:210].replace("\n", " "))
    checks.equal(len(slips), 0)


checks.run(globals())
