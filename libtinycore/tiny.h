/* SPDX-License-Identifier: MIT
 *
 * tiny.h: the one header a program includes. */
#pragma once

#include "base/tiny-error.h"
#include "base/tiny-macros.h"
#include "ir/tiny-dtype.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-tensor.h"
#include "tensor/tiny-tensor-import.h"
#include "tensor/tiny-tensor-kernel.h"
#include "tensor/tiny-tensor-math.h"
#include "tensor/tiny-tensor-nn.h"
#include "tensor/tiny-tensor-quant.h"
#include "tensor/tiny-tensor-shape.h"
#include "autograd/tiny-custom.h"
#include "autograd/tiny-function.h"
#include "autograd/tiny-gradient.h"
#include "autograd/tiny-transforms.h"
#include "nn/tiny-jit.h"
#include "nn/tiny-layers.h"
#include "nn/tiny-loader.h"
#include "nn/tiny-module.h"
#include "nn/tiny-optimizer.h"
#include "nn/tiny-trainer.h"
#include "io/tiny-data-set.h"
#include "io/tiny-idx.h"
#include "io/tiny-model.h"
