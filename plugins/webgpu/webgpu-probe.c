/* SPDX-License-Identifier: MIT
 *
 * webgpu-probe.c: what a shader's compiler does that no library tells: measured by one small kernel when a device is
 * opened, and declared in the architecture.
 *
 * Flushed subnormals are a property of the processor's mode, which WGSL leaves open. Lavapipe compiles with LLVM, whose
 * code for AVX-512 chooses wrong bits where masked bits are joined and chosen in one instruction (LLVM issue 157929).
 * It also counts what all loops of a work-item do together, and ends them at a number of its own. */
#include <math.h>

#include "webgpu.h"

enum { N = 64, N_IN = 5, N_OUT = 4, ROUNDS = 1 << 20 };

static const char source[]
    = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;\n"
      "@group(0) @binding(1) var<storage, read_write> numbers: array<f32>;\n"
      "@compute @workgroup_size (64)\n"
      "fn " WEBGPU_ENTRY "probe (@builtin(local_invocation_id) item: vec3<u32>) {\n"
      "  let i = item.x;\n"
      "  let x = numbers[i];\n"
      "  let y = numbers[64u + i];\n"
      "  let z = numbers[128u + i];\n"
      "  let small = numbers[192u + i];\n"
      "  to[i] = bitcast<u32> (small * 0.5f);\n"
      "  to[64u + i] = bitcast<u32> (small + small);\n"
      "  let bits = bitcast<u32> (x * y * z);\n"
      "  let turned = bitcast<f32> (bits ^ ((bits ^ bitcast<u32> (x)) & 0x80000000u));\n"
      "  to[128u + i] = bitcast<u32> (select (turned, x, y < z));\n"
      "  let end = u32 (numbers[256u + i]);\n"
      "  var n = 0u;\n"
      "  for (var k = 0u; k < end; k++) { n++; }\n"
      "  to[192u + i] = bitcast<u32> (f32 (n));\n"
      "}\n";

/* Numbers whose products are exact: signs of all kinds, y < z and not, one subnormal at least. */
static void
fill (float in[N_IN][N])
{
  for (int i = 0; i < N; i++) {
    in[0][i] = (i & 1 ? -1.0f : 1.0f) * (1 + (float) i / N);
    in[1][i] = i & 2 ? -2 : 4;
    in[2][i] = i & 4 ? -8 : 0.5f;
    in[3][i] = ldexpf (1 + (float) i / N, -126 - i % 3);
    in[4][i] = i == 0 ? ROUNDS : 0;
  }
}

static void
judge (float in[N_IN][N], float out[N_OUT][N], WebgpuArch *arch)
{
  for (int i = 0; i < N; i++) {
    const float x = in[0][i], y = in[1][i], z = in[2][i];
    arch->flush |= out[0][i] == 0 || out[1][i] == 0;
    arch->apart |= out[2][i] != (y < z ? x : copysignf (x * y * z, x));
  }
  /* The driver may have zeroed local memory in the same function, 16 bytes in a round. */
  const uint64_t rounds = (uint64_t) out[3][0], before = arch->local / 16;
  if (rounds < ROUNDS)
    arch->rounds = rounds > before ? rounds - before : 1;
}

static TinyStatus
run (Device *self, Program *program, float in[N_IN][N], float out[N_OUT][N], Error *error)
{
  const uint64_t n_in = sizeof (float[N_IN][N]), n_out = sizeof (float[N_OUT][N]);
  TinySpan spans[] = { { NULL, 0, n_out }, { NULL, 0, n_in } };
  TinyStatus status = webgpu_device_table.alloc (self, n_out, &spans[0].buffer, error);
  if (status == TINY_STATUS_OK)
    status = webgpu_device_table.alloc (self, n_in, &spans[1].buffer, error);
#define COMMAND(name, ...)                                                                     \
  {                                                                                            \
    .struct_size = sizeof (TinyCommand), .type = TINY_COMMAND_##name, __VA_ARGS__              \
  }
  const TinyCommand commands[] = { COMMAND (UPLOAD, .dst = spans[1], .host = in),
                                   COMMAND (DISPATCH, .program = program, .buffers = spans,
                                            .n_buffers = 2, .grid = { N, 1, 1 }),
                                   COMMAND (DOWNLOAD, .src = spans[0], .host = out) };
  const TinySubmit submit = { .struct_size = sizeof submit,
                              .commands = commands,
                              .n_commands = TINY_KIT_N (commands) };
  if (status == TINY_STATUS_OK)
    status = webgpu_submit (self, NULL, &submit, error);
  for (int i = 0; i < 2; i++)
    if (spans[i].buffer != NULL)
      webgpu_device_table.free (self, spans[i].buffer);
  return status;
}

TinyStatus
webgpu_probe (Device *self, WebgpuArch *arch, Error *error)
{
  const uint32_t one[3] = { 1, 1, 1 };
  float in[N_IN][N], out[N_OUT][N];
  char text[sizeof source + 80];
  Program *program;
  int n = snprintf (text, sizeof text, WEBGPU_HEAD "%s", webgpu_points (one), 0u, 2u, source);
  const TinyProgramArgs args = { .struct_size = sizeof args,
                                 .name = "probe",
                                 .data = text,
                                 .size = (uint64_t) n,
                                 .group = { 1, 1, 1 },
                                 .n_params = 2 };
  fill (in);
  TINY_TRY (webgpu_program_load (self, &args, &program, error));
  TinyStatus status = run (self, program, in, out, error);
  webgpu_program_unload (self, program);
  if (status == TINY_STATUS_OK)
    judge (in, out, arch);
  return status;
}
