/* SPDX-License-Identifier: MIT
 *
 * roofline-svg.c: draws kernels under the roofs of their device.
 *
 * Both axes are logarithmic: operations a byte to the right, GFLOP/s upwards. A bandwidth is then a
 * slanted line that ends at the highest arithmetic roof. Points carry numbers that the list
 * below the picture explains. */
#include <math.h>

#include "ir/tiny-dtype.h"
#include "tools/roofline.h"

enum {
  WIDTH = 1000,
  LEFT = 70,
  TOP = 50,
  PLOT_WIDTH = 890,
  PLOT_HEIGHT = 480,
  ROW_HEIGHT = 18,
  MAX_LABELS = 512,
};

/* Powers of two at the edges. */
typedef struct {
  double x_low, x_high, y_low, y_high;
  GString *out;
  struct {
    double x, y;
  } labels[MAX_LABELS];
  guint n_labels;
} Plot;

static double
x_of (const Plot *plot, double intensity)
{
  return LEFT + PLOT_WIDTH * (log2 (intensity) - plot->x_low) / (plot->x_high - plot->x_low);
}

static double
y_of (const Plot *plot, double gflops)
{
  return TOP + PLOT_HEIGHT * (plot->y_high - log2 (gflops)) / (plot->y_high - plot->y_low);
}

static double
highest_roof (const TinyRoof *roof)
{
  double most = 1;
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    most = MAX (most, roof->gflops[i]);
  return most;
}

static gboolean
is_drawn (const RooflinePoint *point)
{
  return point->gflops > 0 && point->intensity > 0;
}

/* Room for all points and for the knees of the roofs. */
static void
find_ranges (Plot *plot, const Roofline *self)
{
  double top = highest_roof (self->roof), low = top;
  plot->x_low = -4;
  plot->x_high = 6;
  for (guint i = 0; i < self->roof->n_levels; i++)
    plot->x_high
        = MAX (plot->x_high, ceil (log2 (top / MAX (self->roof->levels[i].read, 1e-3))) + 1);
  for (guint i = 0; i < self->points->len; i++) {
    const RooflinePoint *point = &g_array_index (self->points, RooflinePoint, i);
    if (!is_drawn (point))
      continue;
    plot->x_low = MIN (plot->x_low, floor (log2 (point->intensity)) - 1);
    plot->x_high = MAX (plot->x_high, ceil (log2 (point->intensity)) + 1);
    low = MIN (low, point->gflops);
    top = MAX (top, point->gflops);
  }
  plot->y_high = ceil (log2 (top)) + 0.5;
  plot->y_low = MIN (floor (log2 (low)) - 1, plot->y_high - 8);
}

static void
put_text (Plot *plot, double x, double y, const char *attributes, const char *text)
{
  g_autofree char *escaped = g_markup_escape_text (text, -1);
  g_string_append_printf (plot->out, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y,
                          attributes, escaped);
}

static void
put_line (Plot *plot, double x1, double y1, double x2, double y2, const char *class)
{
  g_string_append_printf (
      plot->out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1,
      y1, x2, y2, class);
}

/* 1/8, 2, 64, 1k */
static char *
power_text (int exponent)
{
  return exponent < 0     ? g_strdup_printf ("1/%.0f", exp2 (-exponent))
         : exponent >= 10 ? g_strdup_printf ("%.0fk", exp2 (exponent - 10))
                          : g_strdup_printf ("%.0f", exp2 (exponent));
}

static void
draw_axes (Plot *plot)
{
  const double bottom = TOP + PLOT_HEIGHT, right = LEFT + PLOT_WIDTH;
  const int every = plot->y_high - plot->y_low > 14 ? 2 : 1;
  for (int e = (int) ceil (plot->x_low); e <= plot->x_high; e++) {
    g_autofree char *text = power_text (e);
    put_line (plot, x_of (plot, exp2 (e)), TOP, x_of (plot, exp2 (e)), bottom, "grid");
    put_text (plot, x_of (plot, exp2 (e)), bottom + 16, "class=\"tick\" text-anchor=\"middle\"",
              text);
  }
  for (int e = (int) ceil (plot->y_low); e <= plot->y_high; e += every) {
    g_autofree char *text = power_text (e);
    put_line (plot, LEFT, y_of (plot, exp2 (e)), right, y_of (plot, exp2 (e)), "grid");
    put_text (plot, LEFT - 6, y_of (plot, exp2 (e)) + 4, "class=\"tick\" text-anchor=\"end\"",
              text);
  }
  g_string_append_printf (
      plot->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n", LEFT,
      TOP, PLOT_WIDTH, PLOT_HEIGHT);
  put_text (plot, LEFT + PLOT_WIDTH / 2.0, bottom + 36, "text-anchor=\"middle\"",
            "operations a byte of memory touched");
  g_string_append_printf (plot->out,
                          "<text transform=\"translate(18 %.1f) rotate(-90)\" "
                          "text-anchor=\"middle\">GFLOP/s</text>\n",
                          TOP + PLOT_HEIGHT / 2.0);
}

/* A bandwidth, from where it enters the picture to the highest arithmetic roof. */
static void
draw_level (Plot *plot, guint i, const TinyRoofLevel *level, double top)
{
  const double gbps = MAX (level->read, level->triad);
  const double first = MAX (exp2 (plot->x_low), exp2 (plot->y_low) / gbps), last = top / gbps;
  if (gbps <= 0 || first >= last)
    return;
  double x1 = x_of (plot, first), y1 = y_of (plot, gbps * first), x2 = x_of (plot, last),
         y2 = y_of (plot, top);
  put_line (plot, x1, y1, x2, y2, "memory");
  /* Side by side, for two of them may be almost one line. */
  const double place = 0.06 + 0.22 * i;
  g_autofree char *text = g_strdup_printf ("%s %.0f GB/s", level->name, gbps);
  g_string_append_printf (plot->out,
                          "<text transform=\"translate(%.1f %.1f) rotate(%.1f)\" "
                          "class=\"memory-name\">%s</text>\n",
                          x1 + (x2 - x1) * place - 2, y1 + (y2 - y1) * place - 5,
                          atan2 (y2 - y1, x2 - x1) * 180 / G_PI, text);
}

static void
draw_roofs (Plot *plot, const TinyRoof *roof)
{
  const double top = highest_roof (roof);
  double nearest = 1;
  for (guint i = 0; i < roof->n_levels; i++) {
    draw_level (plot, i, &roof->levels[i], top);
    nearest = MAX (nearest, MAX (roof->levels[i].read, roof->levels[i].triad));
  }
  for (guint i = 0; i < TINY_N_DTYPES; i++) {
    if (roof->gflops[i] <= 0)
      continue;
    double x = MAX (x_of (plot, roof->gflops[i] / nearest), LEFT),
           y = y_of (plot, roof->gflops[i]);
    g_autofree char *text
        = g_strdup_printf ("%s %.0f GFLOP/s", tiny_dtype_to_string (i), roof->gflops[i]);
    put_line (plot, x, y, LEFT + PLOT_WIDTH, y, "arithmetic");
    put_text (plot, LEFT + PLOT_WIDTH - 4, y - 5,
              "class=\"arithmetic-name\" text-anchor=\"end\"", text);
  }
}

static gboolean
is_free (const Plot *plot, double x, double y)
{
  if (x < LEFT + 8 || x > LEFT + PLOT_WIDTH - 8 || y < TOP + 10 || y > TOP + PLOT_HEIGHT - 4)
    return FALSE;
  for (guint i = 0; i < plot->n_labels; i++)
    if (fabs (plot->labels[i].x - x) < 20 && fabs (plot->labels[i].y - y) < 13)
      return FALSE;
  return TRUE;
}

/* A dot, and its number beside it where no other number is. */
static void
draw_point (Plot *plot, guint number, const RooflinePoint *point)
{
  const double x = x_of (plot, point->intensity), y = y_of (plot, point->gflops);
  double label_x = x, label_y = y - 8;
  for (guint ring = 1; ring < 8; ring++)
    for (guint turn = 0; turn < 8 * ring; turn++) {
      double angle = G_PI * (-0.5 + 2.0 * turn / (8 * ring)), radius = 6 + 8 * ring;
      double try_x = x + radius * cos (angle), try_y = y + 4 + radius * sin (angle);
      if (is_free (plot, try_x, try_y)) {
        label_x = try_x;
        label_y = try_y;
        ring = 8;
        break;
      }
    }
  if (plot->n_labels < MAX_LABELS) {
    plot->labels[plot->n_labels].x = label_x;
    plot->labels[plot->n_labels++].y = label_y;
  }
  put_line (plot, x, y, label_x, label_y - 4, "leader");
  g_string_append_printf (
      plot->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"point\"><title>", x, y);
  g_autofree char *title = g_markup_printf_escaped ("%s %s", point->text, point->name);
  g_string_append_printf (plot->out, "%s</title></circle>\n", title);
  g_autofree char *text = g_strdup_printf ("%u", number);
  put_text (plot, label_x, label_y, "class=\"number\" text-anchor=\"middle\"", text);
}

static void
draw_list (Plot *plot, const Roofline *self)
{
  static const struct {
    int x;
    const char *anchor, *title;
  } columns[]
      = { { 40, "end", "" },          { 52, "start", "case" },     { 270, "start", "kernel" },
          { 610, "end", "time, µs" }, { 700, "end", "GFLOP/s" },   { 780, "end", "GB/s" },
          { 850, "end", "share" },    { 870, "start", "bound by" } };
  double y = TOP + PLOT_HEIGHT + 70;
  for (guint i = 0; i <= self->points->len; i++, y += ROW_HEIGHT) {
    const RooflinePoint *point
        = i > 0 ? &g_array_index (self->points, RooflinePoint, i - 1) : NULL;
    for (guint c = 0; c < G_N_ELEMENTS (columns); c++) {
      g_autofree char *attributes = g_strdup_printf (
          "class=\"%s\" text-anchor=\"%s\"", i == 0 ? "title" : "cell", columns[c].anchor);
      g_autofree char *text
          = i == 0   ? g_strdup (columns[c].title)
            : c == 0 ? g_strdup_printf ("%u", i)
            : c == 1 ? g_strdup_printf ("%.30s", point->text)
            : c == 2 ? g_strdup_printf ("%.40s", point->name)
            : c == 3 ? g_strdup_printf ("%.2f", point->ns * 1e-3)
            : c == 4 ? g_strdup_printf ("%.2f", point->gflops)
            : c == 5 ? g_strdup_printf ("%.2f", point->gbps)
            : c == 6 ? g_strdup_printf ("%.1f %%", point->share * 100)
                     : g_strdup (point->bound.by_memory ? point->bound.level : "arithmetic");
      put_text (plot, columns[c].x, y, attributes, text);
    }
  }
}

char *
roofline_to_svg (const Roofline *self)
{
  Plot plot = { .out = g_string_new (NULL) };
  const int height = TOP + PLOT_HEIGHT + 90 + ROW_HEIGHT * (int) self->points->len;
  find_ranges (&plot, self);
  g_string_append_printf (plot.out,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                          "height=\"%d\" viewBox=\"0 0 %d %d\">\n"
                          "<style>\n"
                          "text { font: 13px sans-serif; fill: #222 }\n"
                          ".tick { font-size: 11px; fill: #555 }\n"
                          ".number, .title { font-weight: bold }\n"
                          ".number { font-size: 12px }\n"
                          ".head { font-size: 16px; font-weight: bold }\n"
                          ".grid { stroke: #e4e4e4 }\n"
                          ".frame { fill: none; stroke: #888 }\n"
                          ".memory { stroke: #1f6fb4; stroke-width: 1.6 }\n"
                          ".memory-name { fill: #1f6fb4; font-size: 12px }\n"
                          ".arithmetic { stroke: #b4401f; stroke-width: 1.6 }\n"
                          ".arithmetic-name { fill: #b4401f; font-size: 12px }\n"
                          ".point { fill: #222; stroke: #fff }\n"
                          ".leader { stroke: #aaa; stroke-width: 0.8 }\n"
                          "</style>\n"
                          "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                          WIDTH, height, WIDTH, height);
  guint n_threads = MAX (tiny_device_get_target (self->device)->n_threads, 1);
  g_autofree char *head = g_strdup_printf (
      "Kernels under the roofs of %s: %s, %u thread%s", tiny_device_get_name (self->device),
      tiny_device_get_title (self->device), n_threads, n_threads == 1 ? "" : "s");
  put_text (&plot, LEFT, 28, "class=\"head\"", head);
  draw_axes (&plot);
  draw_roofs (&plot, self->roof);
  for (guint i = 0; i < self->points->len; i++) {
    const RooflinePoint *point = &g_array_index (self->points, RooflinePoint, i);
    if (is_drawn (point))
      draw_point (&plot, i + 1, point);
  }
  draw_list (&plot, self);
  g_string_append (plot.out, "</svg>\n");
  return g_string_free (plot.out, FALSE);
}
