/* SPDX-License-Identifier: MIT
 *
 * old-builtins.c: the builtins of the older compiler, which only have to be there. */
extern const int nvrtc_builtins;
const int nvrtc_builtins = 112;
