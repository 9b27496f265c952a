/* SPDX-License-Identifier: MIT
 *
 * tiny.h: the one header a program includes. */
#pragma once

#include "base/tiny-error.h"
#include "base/tiny-macros.h"
