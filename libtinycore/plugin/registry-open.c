/* SPDX-License-Identifier: MIT
 *
 * registry-open.c: from a text in the grammar of DEV= to an opened device.
 *
 * A target is resolved to a choice: which device of which backend, which renderer of which backend
 * makes its code, and the canonical name, which opens the same again. Only then is anything loaded,
 * and only what the choice names. */
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "plugin/registry-private.h"

typedef struct {
  const TinyFound *found, *code; /* whose device; whose renderer */
  GArray *indices;               /* of guint: the devices that the selector names */
  char *renderer;                /* or NULL: the default one */
  char *arch;                    /* or NULL */
  char *suffix;                  /* of the canonical name: ":CLANG", "::x86_64" */
  gboolean is_beside;            /* a device of @code runs the kernels */
  gboolean is_isolated;          /* in a process of its own */
} Choice;

static void
choice_clear (Choice *self)
{
  g_clear_pointer (&self->indices, g_array_unref);
  g_clear_pointer (&self->renderer, g_free);
  g_clear_pointer (&self->arch, g_free);
  g_clear_pointer (&self->suffix, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Choice, choice_clear)

/* ---- names that nobody has ---- */
/* Levenshtein distance, case ignored; texts beyond 32 characters are far from everything. */
static guint
distance (const char *a, const char *b)
{
  guint row[34];
  gsize n = strlen (b);
  if (n > 32 || strlen (a) > 32)
    return G_MAXUINT;
  for (gsize j = 0; j <= n; j++)
    row[j] = (guint) j;
  for (gsize i = 0; a[i] != 0; i++) {
    guint diagonal = row[0];
    row[0] = (guint) i + 1;
    for (gsize j = 0; j < n; j++) {
      guint changed = diagonal + (g_ascii_tolower (a[i]) != g_ascii_tolower (b[j]));
      diagonal = row[j + 1];
      row[j + 1] = MIN (changed, MIN (row[j], row[j + 1]) + 1);
    }
  }
  return row[n];
}

static void
fail_unknown (TinyRegistry *self, const char *name, GError **error)
{
  const GPtrArray *all = tiny_registry_get_found (self);
  const char *nearest = NULL;
  guint least = 3;
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    guint d = distance (name, found->name);
    if (d < least && d < strlen (name)) {
      least = d;
      nearest = found->name;
    }
  }
  g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE, "there is no backend “%s”%s%s%s", name,
               nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* ---- which device ---- */
/* How many devices of @found can be had by number. */
static guint
count_devices (const TinyFound *found, const TinyScan *scan)
{
  guint n = scan->devices->len, most = found->manifest ? found->manifest->max_devices : 0;
  return n > 0 ? MAX (n, most) : 0;
}

static gboolean
fail_selector (const TinyScan *scan,
               const TinyDeviceTarget *target,
               const TinyFound *found,
               GError **error)
{
  GString *ids = g_string_new (NULL);
  const char *name = found->name;
  for (guint i = 0; i < scan->devices->len; i++)
    g_string_append_printf (ids, "%s%s:%u (@%s)", i ? ", " : "", name, i,
                            ((const TinyScanDevice *) scan->devices->pdata[i])->id);
  if (count_devices (found, scan) > scan->devices->len)
    g_string_append_printf (ids, ", and the same again up to %s:%u", name,
                            count_devices (found, scan) - 1);
  g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
               "%s: there is no such device; there is: %s", target->text, ids->str);
  g_string_free (ids, TRUE);
  return FALSE;
}

static gboolean
select_devices (const TinyScan *scan,
                const TinyDeviceTarget *target,
                Choice *out,
                GError **error)
{
  guint n = scan->devices->len, first = 0, last = n - 1;
  out->indices = g_array_new (FALSE, FALSE, sizeof (guint));
  if (target->select == TINY_SELECT_RANGE) {
    first = target->first;
    last = target->last;
  }
  if (last >= count_devices (out->found, scan))
    return fail_selector (scan, target, out->found, error);
  for (guint i = first; i <= last; i++) {
    const TinyScanDevice *device = scan->devices->pdata[i % n];
    if (target->select == TINY_SELECT_ID && !g_str_equal (device->id, target->id))
      continue;
    if (target->select == TINY_SELECT_NONE && device->error != NULL && i < last)
      continue;
    g_array_append_val (out->indices, i);
    if (target->select == TINY_SELECT_NONE)
      break;
  }
  return out->indices->len > 0 || fail_selector (scan, target, out->found, error);
}

/* ---- whose code ---- */
static const char *
field (const TinyDeviceTarget *target, guint i)
{
  return i < target->n_fields ? target->fields[i] : "";
}

static gboolean
fail_renderer (const TinyScan *scan, const char *backend, const char *renderer, GError **error)
{
  g_autofree char *list = g_strjoinv (", ", scan->renderers);
  g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
               "backend %s has no renderer “%s”; it has: %s", backend, renderer,
               list[0] ? list : "none");
  return FALSE;
}

/* RENDERER[:ARCH] of the backend itself. */
static gboolean
choose_own (const TinyScan *scan, const TinyDeviceTarget *target, Choice *out, GError **error)
{
  const char *wanted = field (target, 0), *arch = field (target, 1);
  const char *renderer
      = wanted[0] ? tiny_registry_find_text (scan->renderers, wanted) : scan->renderers[0];
  if (renderer == NULL)
    return fail_renderer (scan, out->found->name, wanted, error);
  if (target->n_fields > 2) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: “%s” is one field too many: it reads NAME:SELECTOR:RENDERER:ARCH",
                 target->text, field (target, 2));
    return FALSE;
  }
  gboolean is_default = renderer == scan->renderers[0];
  out->code = out->found;
  out->renderer = g_strdup (renderer);
  out->arch = g_strdup (arch);
  out->suffix = g_strconcat (is_default && !arch[0] ? "" : ":", is_default ? "" : renderer,
                             arch[0] ? ":" : "", arch, NULL);
  return TRUE;
}

/* [BACKEND|RENDERER][:RENDERER][:ARCH] of another backend. */
static gboolean
choose_foreign (TinyRegistry *self, const TinyDeviceTarget *target, Choice *out, GError **error)
{
  const char *wanted = field (target, 0), *second = field (target, 1), *arch = second;
  const char *renderer = "";
  gboolean by_backend = FALSE;
  if (wanted[0] == 0)
    out->code = tiny_registry_find_default_code (self, out->found, out->is_beside);
  else if ((out->code = tiny_registry_find (self, wanted)) != NULL)
    by_backend = TRUE;
  else if ((out->code = tiny_registry_find_by_renderer (self, wanted)) != NULL)
    renderer = wanted;
  if (out->code == NULL && wanted[0] == 0) {
    tiny_registry_fail_default_code (out->found, out->is_beside, error);
    return FALSE;
  }
  if (out->code == NULL)
    return tiny_registry_fail_foreign (self, wanted, error);
  const TinyScan *scan = tiny_registry_scan_code (self, out->code, error);
  if (scan == NULL)
    return FALSE;
  if (by_backend
      && (target->n_fields > 2 || tiny_registry_find_text (scan->renderers, second) != NULL)) {
    renderer = second;
    arch = field (target, 2);
  }
  const char *known
      = renderer[0] ? tiny_registry_find_text (scan->renderers, renderer) : scan->renderers[0];
  if (known == NULL)
    return fail_renderer (scan, out->code->name, renderer, error);
  out->renderer = g_strdup (known);
  out->arch = g_strdup (arch);
  if (target->n_fields == 0)
    out->suffix = g_strdup ("");
  else
    out->suffix
        = g_strconcat (":", out->code->name, ":", known, arch[0] ? ":" : "", arch, NULL);
  return TRUE;
}

/* ---- a target ---- */
/* MODE+ and ?KEY=VALUE. */
static gboolean
read_mode (const TinyDeviceTarget *target, Choice *out, GError **error)
{
  out->is_isolated = target->mode != NULL && g_ascii_strcasecmp (target->mode, "ISOLATED") == 0;
  if (target->mode != NULL && !out->is_isolated)
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "%s: there is no interface “%s” (the one mode there is: ISOLATED)",
                 target->text, target->mode);
  else if (target->options != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "%s: backend %s takes no option “%s”", target->text, target->name,
                 target->options[0]);
  else
    return TRUE;
  return FALSE;
}

static gboolean
choose (TinyRegistry *self, const TinyDeviceTarget *target, Choice *out, GError **error)
{
  g_autofree char *reason = NULL;
  if (!read_mode (target, out, error))
    return FALSE;
  out->found = tiny_registry_find (self, target->name);
  if (out->found == NULL) {
    fail_unknown (self, target->name, error);
    return FALSE;
  }
  if (out->found->manifest != NULL && !tiny_manifest_matches (out->found->manifest, &reason)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE, "%s: %s", out->found->name, reason);
    return FALSE;
  }
  const TinyScan *scan = tiny_registry_scan (self, out->found, TRUE, error);
  if (scan == NULL || !tiny_scan_check_devices (scan, out->found, error)
      || !select_devices (scan, target, out, error))
    return FALSE;
  gboolean is_own = field (target, 0)[0] != 0
                        ? tiny_registry_find_text (scan->renderers, field (target, 0)) != NULL
                        : scan->renderers[0] != NULL;
  out->is_beside = scan->runs_beside_host;
  return is_own || !scan->takes_any_renderer ? choose_own (scan, target, out, error)
                                             : choose_foreign (self, target, out, error);
}

static char *
make_name (const Choice *choice, guint index)
{
  const char *mode = choice->is_isolated ? "ISOLATED+" : "";
  if (index == 0)
    return g_strconcat (mode, choice->found->name, choice->suffix, NULL);
  return g_strdup_printf ("%s%s:%u%s", mode, choice->found->name, index, choice->suffix);
}

static TinyDevice *
recall_device (TinyRegistry *self, const char *name)
{
  GWeakRef *ref = g_hash_table_lookup (self->devices, name);
  g_autoptr (TinyDevice) device = ref ? g_weak_ref_get (ref) : NULL;
  return device != NULL && !tiny_device_is_lost (device) ? g_steal_pointer (&device) : NULL;
}

static void
remember_device (TinyRegistry *self, TinyDevice *device)
{
  GWeakRef *ref = g_new0 (GWeakRef, 1);
  g_weak_ref_init (ref, device);
  g_hash_table_replace (self->devices, g_strdup (tiny_device_get_name (device)), ref);
}

static gboolean open_target (TinyRegistry *self,
                             const TinyDeviceTarget *target,
                             TinyWant want,
                             GPtrArray *out,
                             GError **error);

/* The first device of the backend that runs kernels for the chosen one, which is beside it. */
static TinyDevice *
open_runner (TinyRegistry *self, const Choice *choice, GError **error)
{
  g_autoptr (GPtrArray) out = g_ptr_array_new_with_free_func (g_object_unref);
  const TinyDeviceTarget target = { .name = choice->code->name,
                                    .fields = { choice->renderer, choice->arch },
                                    .n_fields = 2,
                                    .text = choice->code->name };
  if (open_target (self, &target, TINY_WANT_FIRST, out, error))
    return g_object_ref (out->pdata[0]);
  g_prefix_error (error, "%s runs beside %s: ", choice->found->name, choice->code->name);
  return NULL;
}

/* Without the lock, except where backends are looked up. */
static TinyDevice *
open_new (
    TinyRegistry *self, const Choice *choice, const char *name, const char *id, GError **error)
{
  tiny_registry_enter (self);
  TinyBackend *backend = tiny_registry_load (self, choice->found, choice->is_isolated, error);
  TinyBackend *code
      = backend ? tiny_registry_load (self, choice->code, choice->is_isolated, error) : NULL;
  g_autoptr (TinyDevice) runner
      = code != NULL && choice->is_beside ? open_runner (self, choice, error) : NULL;
  tiny_registry_leave (self);
  if (code == NULL || (choice->is_beside && runner == NULL))
    return NULL;
  const TinyDeviceOptions options = {
    .name = name,
    .id = id,
    .code = code,
    .renderer = choice->renderer,
    .arch = choice->arch,
    .runner = runner,
  };
  return tiny_device_new (backend, &options, error);
}

static TinyDevice *
open_index (TinyRegistry *self, const Choice *choice, guint index, GError **error)
{
  g_autofree char *name = make_name (choice, index), *id = NULL;
  TinyDevice *device;
  do {
    if ((device = recall_device (self, name)) != NULL)
      return device;
    const TinyScan *scan = tiny_registry_recall (self, choice->found);
    const guint n = scan != NULL ? scan->devices->len : 0;
    const TinyScanDevice *info = n > 0 ? scan->devices->pdata[index % n] : NULL;
    if (info != NULL && info->error != NULL) {
      g_set_error_literal (error, TINY_ERROR, (gint) info->code, info->error);
      return NULL;
    }
    g_free (id);
    id = g_strdup (info ? info->id : "");
  } while (!tiny_registry_begin (self, "open", name));
  device = open_new (self, choice, name, id, error);
  tiny_registry_end (self, "open", name);
  if (device != NULL)
    remember_device (self, device);
  return device;
}

/* Adds the devices of @target to @out: the first one, all that it names, or a name. */
static gboolean
open_target (TinyRegistry *self,
             const TinyDeviceTarget *target,
             TinyWant want,
             GPtrArray *out,
             GError **error)
{
  g_auto (Choice) choice = { 0 };
  guint before = out->len;
  if (!choose (self, target, &choice, error))
    return FALSE;
  for (guint i = 0; i < (want == TINY_WANT_ALL ? choice.indices->len : 1); i++) {
    guint index = g_array_index (choice.indices, guint, i);
    gpointer device = want == TINY_WANT_NAME ? (gpointer) make_name (&choice, index)
                                             : open_index (self, &choice, index, error);
    if (device == NULL) {
      g_mutex_unlock (&self->lock); /* closing runs the plugin */
      g_ptr_array_set_size (out, (gint) before);
      g_mutex_lock (&self->lock);
      return FALSE;
    }
    g_ptr_array_add (out, device);
  }
  return TRUE;
}

/* ---- several ---- */
typedef struct {
  GString *text;
  GError *last;
  guint n;
  const char *wrong; /* what is wrong in what the user has set; interned, or NULL */
} Failures;

static void
add_failure (Failures *self, GError *error)
{
  if (self->text == NULL)
    self->text = g_string_new (NULL);
  g_string_append_printf (self->text, "%s%s", self->n ? "; " : "", error->message);
  if (error->code == TINY_ERROR_INVALID)
    self->wrong = g_intern_string (error->message);
  g_clear_error (&self->last);
  self->last = error;
  self->n++;
}

/* A device that could not be used for want of a right setting is passed over, not silently: said once. */
static void
warn_of_settings (const Failures *self, TinyWant want)
{
  static const char *said;
  if (self->wrong != NULL && self->wrong != said && want != TINY_WANT_NAME)
    g_warning ("%s; another device is used", said = self->wrong);
}

/* What was asked, why each candidate failed, and what there is unless the text itself is wrong. One
 * failure keeps its own code, several become TINY_ERROR_NO_DEVICE. */
static void
report_failures (TinyRegistry *self, Failures *failures, const char *asked, GError **error)
{
  gint code = failures->n == 1 ? failures->last->code : TINY_ERROR_NO_DEVICE;
  gboolean is_wrong = code == TINY_ERROR_INVALID || code == TINY_ERROR_UNSUPPORTED;
  g_autofree char *there = is_wrong ? NULL : tiny_registry_summarise (self);
  /* A lone target is named once. */
  const char *text
      = failures->text ? failures->text->str : "none is chosen unless DEV= names it";
  const char *target = g_str_has_prefix (asked, "DEV=") ? asked + strlen ("DEV=") : asked;
  gsize length = strlen (target);
  if (failures->n == 1 && strncmp (text, target, length) == 0
      && strncmp (text + length, ": ", 2) == 0)
    text += length + 2;
  g_set_error (error, TINY_ERROR, code, "%s: %s%s%s", asked, text, there ? "; backends: " : "",
               there ? there : "");
}

static void
failures_clear (Failures *self)
{
  g_clear_error (&self->last);
  if (self->text != NULL)
    g_string_free (self->text, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Failures, failures_clear)

static gboolean
open_chain (TinyRegistry *self,
            const GPtrArray *chain,
            const char *asked,
            TinyWant want,
            GPtrArray *out,
            GError **error)
{
  g_auto (Failures) failures = { 0 };
  for (guint i = 0; i < chain->len; i++) {
    GError *why = NULL;
    if (open_target (self, chain->pdata[i], want, out, &why)) {
      warn_of_settings (&failures, want);
      return TRUE;
    }
    add_failure (&failures, why);
  }
  report_failures (self, &failures, asked, error);
  return FALSE;
}

static gboolean
open_text (TinyRegistry *self,
           const char *text,
           const char *variable,
           TinyWant want,
           GPtrArray *out,
           GError **error)
{
  g_autoptr (TinyDeviceSpec) spec = tiny_device_spec_parse (text, error);
  g_autofree char *asked = variable ? g_strdup_printf ("%s=%s", variable, text)
                                    : g_strdup_printf ("device “%s”", text);
  if (spec == NULL)
    return FALSE;
  if (spec->is_help) {
    g_autofree char *there = tiny_registry_summarise (self);
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: backends: %s; “tinycore devices” says more", asked, there);
    return FALSE;
  }
  for (guint i = 0; i < (want == TINY_WANT_ALL ? spec->chains->len : 1); i++)
    if (!open_chain (self, spec->chains->pdata[i], asked, want, out, error))
      return FALSE;
  return TRUE;
}

guint
tiny_registry_find_class (TinyRegistry *self, const TinyFound *found)
{
  const guint promised = found->manifest ? found->manifest->device_class : TINY_CLASS_CPU;
  const TinyScan *scan = NULL;
  if (promised != TINY_CLASS_CPU && tiny_manifest_matches (found->manifest, NULL))
    scan = tiny_registry_scan (self, found, FALSE, NULL);
  for (guint i = 0; scan != NULL && i < scan->devices->len; i++) {
    const TinyScanDevice *device = scan->devices->pdata[i];
    if (device->error == NULL && device->device_class != 0)
      return device->device_class;
  }
  return promised;
}

static gboolean
try_best (TinyRegistry *self,
          const TinyFound *found,
          TinyWant want,
          GPtrArray *out,
          Failures *failures)
{
  GError *why = NULL;
  TinyDeviceTarget target = { .name = found->name, .text = found->name };
  if (open_target (self, &target, want, out, &why)) {
    warn_of_settings (failures, want);
    return TRUE;
  }
  add_failure (failures, why);
  return FALSE;
}

/* Nothing was asked for: the best class that works; simulators and remote devices never. Of one class
 * those that are made for it come first. */
static gboolean
open_best (TinyRegistry *self, TinyWant want, GPtrArray *out, GError **error)
{
  static const guint order[] = { TINY_CLASS_GPU, TINY_CLASS_NPU, TINY_CLASS_CPU };
  g_auto (Failures) failures = { 0 };
  g_autoptr (GPtrArray) later = g_ptr_array_new ();
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint o = 0; o < G_N_ELEMENTS (order); o++) {
    for (guint i = 0; i < all->len; i++) {
      TinyFound *found = all->pdata[i];
      if (found->shadower != NULL || found->is_mask
          || (found->manifest ? found->manifest->device_class : TINY_CLASS_CPU) != order[o])
        continue;
      if (tiny_registry_find_class (self, found) != order[o])
        g_ptr_array_add (later, found);
      else if (try_best (self, found, want, out, &failures))
        return TRUE;
    }
    for (guint i = 0; i < later->len; i++)
      if (tiny_registry_find_class (self, later->pdata[i]) == order[o]
          && try_best (self, later->pdata[i], want, out, &failures))
        return TRUE;
  }
  report_failures (self, &failures, "no device", error);
  return FALSE;
}

/* CUDA=1, tinygrad's oldest spelling; only for backends there are. */
const char *
tiny_registry_find_old_spelling (TinyRegistry *self)
{
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    const char *value = g_getenv (found->name);
    if (found->shadower == NULL && value != NULL && g_str_equal (value, "1"))
      return found->name;
  }
  return NULL;
}

gboolean
tiny_registry_open_any (
    TinyRegistry *self, const char *spec, TinyWant want, GPtrArray *out, GError **error)
{
  const char *variable = NULL;
  if (spec == NULL && (spec = tiny_env_get_text (TINY_ENV_DEV)) != NULL)
    variable = "DEV";
  else if (spec == NULL && (spec = tiny_env_get_text (TINY_ENV_BACKEND)) != NULL)
    variable = "BACKEND";
  else if (spec == NULL && (spec = tiny_registry_find_old_spelling (self)) != NULL)
    variable = "DEV";
  gboolean opened = spec == NULL || spec[0] == 0
                        ? open_best (self, want, out, error)
                        : open_text (self, spec, variable, want, out, error);
  return opened && registry_warn_of_absent (self);
}

GPtrArray *
tiny_registry_open_all (TinyRegistry *self, const char *spec, GError **error)
{
  g_autoptr (GPtrArray) out = g_ptr_array_new_with_free_func (g_object_unref);
  tiny_registry_enter (self);
  gboolean opened = tiny_registry_open_any (self, spec, TINY_WANT_ALL, out, error);
  tiny_registry_leave (self);
  return opened ? g_steal_pointer (&out) : NULL;
}

TinyDevice *
tiny_registry_open (TinyRegistry *self, const char *spec, GError **error)
{
  g_autoptr (GPtrArray) out = g_ptr_array_new_with_free_func (g_object_unref);
  tiny_registry_enter (self);
  gboolean opened = tiny_registry_open_any (self, spec, TINY_WANT_FIRST, out, error);
  tiny_registry_leave (self);
  return opened ? g_object_ref (out->pdata[0]) : NULL;
}
