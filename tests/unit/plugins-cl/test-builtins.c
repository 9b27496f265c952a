/* SPDX-License-Identifier: MIT
 *
 * test-builtins.c: what cl-builtins.c declares is all that kernels call, and is what the driver has: without
 * its own declarations PoCL compiles and links a kernel that calls each of them for each type and all lanes. */
#include <dlfcn.h>

#include "../../device-there.h"
#include "../../../plugins/cl/cl.h"

#define OPTIONS                                                                                \
  "-w -cl-std=CL1.2 -DTINY_INT64=1 -DTINY_FP64=1 -DTINY_FP16=0 -DTINY_GRID=get_group_id "      \
  "-DTINY_GROUP= "
static const char *const types[]
    = { "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double" };
static const char *const lanes[] = { "", "2", "4", "8", "16" };
ClApi cl;

static void
add_calls (GString *text)
{
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    for (guint k = 0; k < G_N_ELEMENTS (lanes); k++) {
      const char *to = types[i], *n = lanes[k];
      g_string_append_printf (
          text,
          "__kernel void calls_%s%s (__global %s%s *p, __global char%s *q, __local %s *l) {\n"
          "size_t at = get_global_id (0) + get_group_id (1) + get_local_id (2);\n"
          "%s%s x = p[at];\n",
          to, n, to, n, n, to, to, n);
      for (guint j = 0; j < G_N_ELEMENTS (types); j++)
        g_string_append_printf (text, "x += convert_%s%s (convert_%s%s (x));\n", to, n,
                                types[j], n);
      if (k > 0)
        g_string_append_printf (
            text,
            "vstore%s (x, 1, l); barrier (CLK_LOCAL_MEM_FENCE); x += vload%s (0, l);\n"
            "vstore%s (vload%s (1, (__global %s *) p), 2, (__global %s *) p);\n",
            n, n, n, n, to, to);
      if (strcmp (to, "float") == 0)
        g_string_append_printf (text, "x += tiny_widen%s (tiny_narrow%s (x));\n", n, n);
      if (i >= G_N_ELEMENTS (types) - 2)
        g_string_append (text, "x += sqrt (x) + trunc (x) + exp2 (x) + log2 (x) + sin (x);\n");
      g_string_append (text, "p[at] = x;\n}\n");
    }
}

static void
test_declared (void)
{
  g_autofree char *driver = NULL;
  void *handle = dlopen ("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
#define LOAD(needed, type, name, parameters, arguments)                                        \
  *(void **) &cl.name = handle != NULL ? dlsym (handle, "cl" #name) : NULL;
  CL_FUNCTIONS (LOAD)
#undef LOAD
  cl_platform_id platform;
  cl_device_id device;
  char name[64] = "";
  g_assert_cmpint (cl.GetPlatformIDs (1, &platform, NULL), ==, CL_SUCCESS);
  cl.GetPlatformInfo (platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
  if (strcmp (name, CL_POCL) != 0) {
    g_test_skip ("the first platform is not PoCL");
    return;
  }
  g_assert_cmpint (cl.GetDeviceIDs (platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL), ==,
                   CL_SUCCESS);
  cl_int code;
  cl_context context = cl.CreateContext (NULL, 1, &device, NULL, NULL, &code);
  g_assert_cmpint (code, ==, CL_SUCCESS);
  g_autoptr (GString) text = g_string_new (cl_builtins);
  g_string_append (text, cl_dialect.prelude);
  add_calls (text);
  g_autofree char *options = g_strconcat (cl_builtins_option, OPTIONS, NULL);
  cl_program program
      = cl.CreateProgramWithSource (context, 1, (const char **) &text->str, &text->len, &code);
  g_assert_cmpint (code, ==, CL_SUCCESS);
  code = cl.BuildProgram (program, 1, &device, options, NULL, NULL);
  if (code != CL_SUCCESS) {
    static char log[4096];
    cl.GetProgramBuildInfo (program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    g_test_message ("%s", log);
  }
  g_assert_cmpint (code, ==, CL_SUCCESS);
  cl.ReleaseProgram (program);
}

int
main (int argc, char *argv[])
{
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/builtins/declared", test_declared);
  return g_test_run ();
}
