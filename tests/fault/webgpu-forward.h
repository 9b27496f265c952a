/* SPDX-License-Identifier: MIT
 *
 * webgpu-forward.h: the real library's functions, as real_NAME(), for webgpu-fault.c. */
#pragma once

#include "webgpu-api.h"

#define EXPORT __attribute__ ((visibility ("default")))

#define FUNCTION(result, name, parameters, arguments) result real_##name parameters;
#define OPTIONAL                                      FUNCTION
#include "webgpu-symbols.def"
#undef OPTIONAL
#undef FUNCTION
