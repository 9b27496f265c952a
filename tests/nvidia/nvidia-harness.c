/* SPDX-License-Identifier: MIT
 *
 * nvidia-harness.c: see nvidia-harness.h. */
#include "nvidia-harness.h"

#include "render/tiny-render.h"

/* ---- programs ---- */
Program *
program_new (uint32_t n_items)
{
  Program *p = g_new0 (Program, 1);
  p->linear = (TinyLinear){ .struct_size = sizeof (TinyLinear),
                            .name = "k",
                            .instrs = p->instrs,
                            .sources = p->sources,
                            .params = p->params,
                            .grid = { 1, 1, 1 },
                            .group = { n_items, 1, 1 } };
  return p;
}

uint32_t
program_param (Program *p, TinyDType dtype, uint32_t flags)
{
  const uint32_t n = p->linear.n_params++;
  g_assert_cmpuint (n, <, G_N_ELEMENTS (p->params));
  p->params[n] = (TinyParam){ .dtype = dtype, .flags = flags, .n_elements = 64 };
  return ADD (PARAM, dtype, 1, n);
}

uint32_t
program_add (Program *p, TinyInstrOp op, guint dtype, guint lanes, int64_t arg, ...)
{
  const uint32_t at = p->linear.n_instrs++;
  g_assert_cmpuint (at, <, G_N_ELEMENTS (p->instrs));
  TinyInstr *instr = &p->instrs[at];
  *instr = (TinyInstr){ .op = (uint16_t) op,
                        .dtype = (uint8_t) dtype,
                        .lanes = (uint16_t) lanes,
                        .sources = p->linear.n_sources,
                        .arg = arg };
  va_list list;
  va_start (list, arg);
  for (int source = va_arg (list, int); source >= 0; source = va_arg (list, int)) {
    p->sources[p->linear.n_sources++] = (uint32_t) source;
    instr->n_sources++;
  }
  va_end (list);
  return at;
}

char *
program_render (Program *p)
{
  g_autoptr (GError) error = NULL;
  char *source = tiny_render_source (&p->linear, &nvidia_dialect, &error);
  g_assert_no_error (error);
  return source;
}

/* ---- compiling ---- */
static void *
test_alloc (uint64_t n_bytes)
{
  return g_malloc (n_bytes);
}

const TinyHost test_host
    = { .struct_size = sizeof (TinyHost), .alloc = test_alloc, .free = g_free };

void
compiled_clear (Compiled *self)
{
  g_clear_pointer (&self->data, g_free);
}

Compiled
program_compile (Program *p, const char *arch, const char *source)
{
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = arch,
                                 .name = "k",
                                 .source = source,
                                 .source_size = strlen (source),
                                 .linear = &p->linear };
  Compiled self = { .error = { .struct_size = sizeof self.error } };
  void *data = NULL;
  self.status = nvidia_compile (&test_host, &args, &data, &self.size, &self.error);
  self.data = data;
  return self;
}

TinyTarget
get_target (const char *arch)
{
  TinyTarget target = { .struct_size = sizeof target };
  TinyPluginError error = { .struct_size = sizeof error };
  if (nvidia_target (arch, &target, &error) != TINY_STATUS_OK)
    g_error ("%s: %s", arch, error.text);
  return target;
}

gboolean
nvrtc_is_there (void)
{
  NvidiaArch arch = { 0 };
  const NvidiaNvrtc *nvrtc;
  TinyPluginError error = { .struct_size = sizeof error };
  g_assert_cmpint (nvidia_arch_parse ("sm_80", &arch, &error), ==, TINY_STATUS_OK);
  if (nvidia_find_nvrtc (&arch, &nvrtc, &error) == TINY_STATUS_OK)
    return TRUE;
  g_print ("1..0 # SKIP NVIDIA's compiler: %s\n", error.text);
  return FALSE;
}
