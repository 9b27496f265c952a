/* SPDX-License-Identifier: MIT
 *
 * tiny-macros.h: what every public declaration carries. */
#pragma once

#if defined(TINY_COMPILATION) && defined(__GNUC__)
#define TINY_API __attribute__ ((visibility ("default"))) extern
#else
#define TINY_API extern
#endif
