#include "render/tiny-render.h"
#include "base/tiny-error.h"
char *
tiny_render_source (const TinyLinear *linear, const TinyDialect *dialect, GError **error)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED, "no renderer yet");
  return NULL;
}
