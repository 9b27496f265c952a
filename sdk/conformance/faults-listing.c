/* SPDX-License-Identifier: MIT
 *
 * faults-listing.c: disassemble() gives a text of a binary, each its own, and refuses what compile() did not make;
 * context() gives one object; and there may be many programs. */
#include "faults.h"

#include <string.h>

#include "step.h"

/* ---- disassemble() ---- */
static GBytes *
compile_add (ConfTrial *trial, const ConfSubject *subject, guint add)
{
  GError *error = NULL;
  g_auto (ConfScript) script;
  conf_step_init_add (&script, add);
  GBytes *binary = conf_linear_compile (tiny_device_get_renderer (subject->device),
                                        subject->target, tiny_device_get_name (subject->device),
                                        conf_script_get (&script), &error);
  conf_check_error (trial, error, "compile");
  return binary;
}

/* disassemble() as the core calls it, which has made valid what was no UTF-8. */
static char *
list_whole (ConfTrial *trial, const ConfSubject *subject, GBytes *binary)
{
  GError *error = NULL;
  char *text = tiny_device_disassemble (subject->device, binary, &error);
  if (conf_check_error (trial, error, "disassemble")) {
    conf_check (trial, text[0] != 0, "disassemble() answers OK and no text");
    conf_check (trial, strstr (text, "\357\277\275") == NULL, "the text is no UTF-8");
  }
  return text;
}

/* Two programs, and the first again. */
static void
run_texts (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autoptr (GBytes) one = compile_add (trial, subject, 5);
  g_autoptr (GBytes) two = compile_add (trial, subject, 1234567);
  if (one == NULL || two == NULL)
    return;
  char *texts[3] = { NULL };
  for (guint i = 0; i < 3 && !conf_has_failed (trial); i++)
    texts[i] = list_whole (trial, subject, i == 1 ? two : one);
  if (!conf_has_failed (trial)) {
    conf_check (trial, strcmp (texts[0], texts[2]) == 0, "one binary has two texts");
    conf_check (trial, g_bytes_equal (one, two) || strcmp (texts[0], texts[1]) != 0,
                "two binaries have one text");
  }
  for (guint i = 0; i < 3; i++)
    g_free (texts[i]);
}

/* None, a part, and something else. */
static void
run_damage (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autoptr (GBytes) binary = compile_add (trial, subject, 5);
  if (binary == NULL)
    return;
  const gsize whole = g_bytes_get_size (binary);
  g_autofree guint8 *noise = g_malloc (whole);
  conf_fill (noise, whole, 1);
  g_autoptr (GBytes) other = g_bytes_new (noise, whole);
  for (guint i = 0; i < 17 && !conf_has_failed (trial); i++) {
    g_autoptr (GError) error = NULL;
    const gsize size = i < 16 ? whole * i / 16 : whole;
    g_autoptr (GBytes) part = g_bytes_new_from_bytes (i < 16 ? binary : other, 0, size);
    g_autofree char *text = tiny_device_disassemble (subject->device, part, &error);
    conf_check (trial, text == NULL && error != NULL,
                "disassemble() takes %" G_GSIZE_FORMAT " bytes of a binary of %" G_GSIZE_FORMAT
                "%s",
                size, whole, i < 16 ? "" : " that compile() did not make");
  }
}

/* ---- many programs ---- */
/* One binary, loaded so often; some of the programs are used, when the others are there. */
static void
run_crowd (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { CROWD = 300 };
  TinyPluginProgram *programs[CROWD] = { NULL };
  GError *error = NULL;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfStep) step = { 0 };
  g_autoptr (GBytes) binary
      = conf_step_init (&step, trial, subject) ? conf_step_compile (&step, &error) : NULL;
  conf_check_error (trial, error, "compile");
  for (guint i = 0; i < CROWD && binary != NULL && !conf_has_failed (trial); i++) {
    gsize size;
    const void *data = g_bytes_get_data (binary, &size);
    const TinyStatus status = conf_step_load (&step, &raw, data, size, &programs[i]);
    conf_check (trial, status == TINY_STATUS_OK, "program_load() of the %uth program: %s: %s",
                i + 1, conf_status_to_string (status), raw.error.text);
  }
  for (guint i = 0; i < CROWD && !conf_has_failed (trial); i += CROWD / 3 - 1)
    conf_step_use (&step, &raw, programs[i], i);
  for (guint i = 0; i < CROWD; i++)
    conf_raw_unload (&raw, programs[i]);
  conf_raw_end (&raw);
}

/* ---- context() ---- */
static void
run_context (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  void *one = NULL, *two = NULL;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  void **const outs[] = { &one, &two };
  for (guint i = 0; i < G_N_ELEMENTS (outs); i++) {
    const TinyStatus status = raw.table->context (raw.device, outs[i], &raw.error);
    if (status != TINY_STATUS_OK)
      conf_raw_check_failure (&raw, status, status, "context");
    else
      conf_check (trial, *outs[i] != NULL, "context() answers OK and NULL");
  }
  conf_check (trial, one == two, "context() gives another object each time");
  conf_raw_end (&raw);
}

void
conf_list_listing (const ConfSubject *subject, ConfList *out)
{
  const ConfCase texts = { .run = run_texts }, damage = { .run = run_damage },
                 context = { .run = run_context }, crowd = { .run = run_crowd };
  conf_list_add (out, &crowd, "programs/300");
  if (tiny_device_get_table (subject->device)->context != NULL)
    conf_list_add (out, &context, "context");
  else
    conf_list_absent (out, "the device has no context()", "context");
  if (conf_only_claims (subject)
      || tiny_device_get_renderer (subject->device)->disassemble == NULL) {
    conf_list_absent (out, "the renderer has no disassemble()", "disassembly");
    return;
  }
  conf_list_add (out, &texts, "disassembly/texts");
  conf_list_add (out, &damage, "disassembly/damage");
}
