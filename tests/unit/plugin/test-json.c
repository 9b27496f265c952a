/* SPDX-License-Identifier: MIT
 *
 * test-json.c: JSON is what RFC 8259 says it is, read in one pass: no comment or quotation mark hides how deep a text is,
 * and none becomes much more memory than it has bytes. */
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "plugin/tiny-json.h"

enum { DEEP = 2000000, MIB = 1 << 20, LARGE = 4 * MIB, MOST_KIB = 160 << 10 };

/* Sanitizers surround each piece of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TIMES = 4 };
#else
enum { TIMES = 1 };
#endif

static JsonNode *
parse (const char *text, GError **error)
{
  return tiny_json_parse (text, -1, error);
}

static void
test_read (void)
{
  static const struct {
    const char *text, *as;
  } cases[] = {
    { "{}", "{}" },
    { " \t\r\n{ } \n", "{}" },
    { "{\"a\":1,\"b\":[true,false,null,-0,9223372036854775807,-9223372036854775808]}",
      "{\"a\":1,\"b\":[true,false,null,0,9223372036854775807,-9223372036854775808]}" },
    { "{\"a\":[1.5,-2e2,0.0]}", "{\"a\":[1.5,-200.0,0.0]}" },
    { "{\"a\":[[],{},[{}]]}", "{\"a\":[[],{},[{}]]}" },
    { "{\"\":{\"a\":1},\"a\":{\"a\":1}}", "{\"\":{\"a\":1},\"a\":{\"a\":1}}" },
    { "{\"\\u0061\\\"\\\\\\/\\b\\f\\n\\r\\t\":\"\\u00e9\\ud83d\\ude00é\"}",
      "{\"a\\\"\\\\/\\b\\f\\n\\r\\t\":\"é😀é\"}" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (JsonNode) root = parse (cases[i].text, &error);
    g_autofree char *as = root != NULL ? json_to_string (root, FALSE) : g_strdup ("");
    if (error != NULL || strcmp (as, cases[i].as) != 0)
      CASE_FAILS ("%s: %s%s", cases[i].text, as, error != NULL ? error->message : "");
  }
}

static void
test_refused (void)
{
  static const struct {
    const char *text, *part;
  } cases[] = {
    { "", "it is empty" },
    { "1", "does not begin with {" },
    { "[]", "not a JSON object" },
    { "{", "line 1:2: it ends where" },
    { "{\n \"a\": x}", "line 2:7: “x” where a value is wanted" },
    { "{\"a\":1}}", "where its end is wanted" },
    { "{\"a\":1} /* */", "where its end is wanted" },
    { "{/* \" */\"a\":1}", "where a text in \"\" is wanted" },
    { "{// \n\"a\":1}", "where a text in \"\" is wanted" },
    { "{'a':1}", "where a text in \"\" is wanted" },
    { "{a:1}", "where a text in \"\" is wanted" },
    { "{\"a\":'1'}", "where a value is wanted" },
    { "{\"a\":1,}", "where a text in \"\" is wanted" },
    { "{\"a\":[1,]}", "where a value is wanted" },
    { "{\"a\":[,1]}", "where a value is wanted" },
    { "{\"a\":[1 2]}", "where a comma or ] is wanted" },
    { "{\"a\":1 \"b\":2}", "where a comma or } is wanted" },
    { "{\"a\" 1}", "where a colon is wanted" },
    { "{\"a\":01}", "where a number is wanted" },
    { "{\"a\":-}", "where a number is wanted" },
    { "{\"a\":1.}", "where a number is wanted" },
    { "{\"a\":.5}", "where a value is wanted" },
    { "{\"a\":+1}", "where a value is wanted" },
    { "{\"a\":1e}", "where a number is wanted" },
    { "{\"a\":0x1}", "where a comma or } is wanted" },
    { "{\"a\":NaN}", "where a value is wanted" },
    { "{\"a\":Infinity}", "where a value is wanted" },
    { "{\"a\":True}", "where a value is wanted" },
    { "{\"a\":nul}", "where a value is wanted" },
    { "{\"a\":\"\n\"}", "where the end of a text is wanted" },
    { "{\"a\":\"\\x41\"}", "where an escape is wanted" },
    { "{\"a\":\"\\u00g0\"}", "where a hexadecimal digit is wanted" },
    { "{\"a\":\"\\ud800\"}", "surrogate pair" },
    { "{\"a\":\"\\ud800\\u0041\"}", "surrogate pair" },
    { "{\"a\":\"\\udc00\"}", "surrogate pair" },
    { "{\"a\":\"\\u0000\"}", "a text with \\u0000 at byte 6" },
    { "{\"\\u0000\":1}", "a text with \\u0000 at byte 2" },
    { "{\"a\":1,\"\\u0061\":2}", "“a” is there twice" },
    { "{\"x\":{\"a\":1,\"b\":{},\"a\":2}}", "“a” is there twice" },
    { "{\"a\":9223372036854775808}", "the number 9223372036854775808 at byte 5 is beyond" },
    { "{\"a\":-1e999}", "the number -1e999 at byte 5 is beyond" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (JsonNode) root = parse (cases[i].text, &error);
    if (root != NULL || !g_error_matches (error, TINY_ERROR, TINY_ERROR_FORMAT)
        || strstr (error->message, cases[i].part) == NULL)
      CASE_FAILS ("%s: %s", cases[i].text, root != NULL ? "read" : error->message);
  }
}

/* @begin, then @part as often as fills @n bytes. */
static char *
repeat (const char *begin, const char *part, gsize n)
{
  GString *out = g_string_new (begin);
  while (out->len < n)
    g_string_append (out, part);
  return g_string_free (out, FALSE);
}

/* Depth is seen where it is, whatever stands before it: 32 levels are read and 33 are not. */
static void
test_depth (void)
{
  static const char *const before[]
      = { "{\"a\": ", "{\"a\": /* \" */ ", "{'\"': ", "{\"a\": // \"\n ", "{\"\\\"\": " };
  static const char *const deeper[] = { "[", "{\"x\":", "[{\"x\":", "/* \" */[" };
  for (guint i = 0; i < G_N_ELEMENTS (before); i++)
    for (guint k = 0; k < G_N_ELEMENTS (deeper); k++) {
      g_autoptr (GError) error = NULL;
      g_autofree char *text = repeat (before[i], deeper[k], DEEP);
      g_assert_null (parse (text, &error));
      g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
    }
  for (guint n = 31; n <= 32; n++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *open = g_strnfill (n, '['), *close = g_strnfill (n, ']');
    g_autofree char *text = g_strconcat ("{\"a\":", open, close, "}", NULL);
    g_autoptr (JsonNode) root = parse (text, &error);
    if (n == 31)
      g_assert_no_error (error);
    else
      g_assert_nonnull (strstr (error->message, "nested deeper than 32 at byte 36"));
  }
}

static glong
most_kib (void)
{
  struct rusage used;
  getrusage (RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

/* Texts of values that are small as texts only are refused before they are large. */
static void
test_memory (void)
{
  static const char *const parts[] = { "{},", "[],", "0,", "\"\",", "{\"\":{}},", "1e0," };
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *text = repeat ("{\"a\":[", parts[i], LARGE);
    const glong before = most_kib ();
    g_assert_null (parse (text, &error));
    if (strstr (error->message, "too much memory") == NULL)
      CASE_FAILS ("%s: %s", parts[i], error->message);
    g_assert_cmpint (most_kib () - before, <, TIMES * MOST_KIB);
  }
  g_autoptr (GError) error = NULL;
  g_autofree char *long_text = g_strnfill (LARGE, 'x');
  g_autofree char *text = g_strconcat ("{\"a\":\"", long_text, "\"}", NULL);
  g_autoptr (JsonNode) root = parse (text, &error);
  g_assert_no_error (error);
}

static gboolean
count (const char *name, JsonNode *value, gpointer user_data, GError **error)
{
  guint *n = user_data;
  g_assert_true (JSON_NODE_HOLDS_ARRAY (value));
  if (g_str_equal (name, "last")) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_FORMAT, "enough");
    return FALSE;
  }
  ++*n;
  return TRUE;
}

/* A visitor has one member in memory at a time, and stops where it wants to. */
static void
test_visit (void)
{
  enum { N = 100000 };
  g_autoptr (GString) text = g_string_new ("{");
  guint n = 0;
  for (guint i = 0; i < N; i++)
    g_string_append_printf (text, "\"%x\":[[],[],[],[],[],[],[],[]],", i);
  const gsize length = text->len;
  g_string_append (text, "\"last\":[],\"later\":wrong");
  const glong before = most_kib ();
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_json_visit (text->str, (gssize) text->len, count, &n, &error));
  g_assert_cmpstr (error->message, ==, "enough");
  g_assert_cmpuint (n, ==, N);
  g_assert_cmpint (most_kib () - before, <, TIMES * (32 << 10));
  g_clear_error (&error);
  g_assert_false (tiny_json_visit (text->str, (gssize) length, count, &n, &error));
  g_assert_nonnull (strstr (error->message, "it ends where"));
}

static gboolean
pass (const char *name, JsonNode *value, gpointer user_data, GError **error)
{
  return TRUE;
}

/* Names that g_str_hash () cannot tell apart take no longer than others, and what json-glib keeps has few of them. */
static void
test_chosen_names (void)
{
  enum { N_BITS = 16, MOST_S = 3 };
  g_autoptr (GString) text = g_string_new ("{");
  for (guint i = 0; i < 1 << N_BITS; i++) {
    char name[2 * N_BITS + 1] = "";
    for (guint bit = 0; bit < N_BITS; bit++)
      memcpy (name + 2 * bit, i >> bit & 1 ? "Ez" : "FY", 3);
    g_assert_cmpuint (g_str_hash (name), ==, g_str_hash ("FYFYFYFYFYFYFYFYFYFYFYFYFYFYFYFY"));
    g_string_append_printf (text, "%s\"%s\":0", i > 0 ? "," : "", name);
  }
  g_string_append (text, "}");
  g_autoptr (GError) error = NULL;
  const clock_t begin = clock (); /* a busy machine counts little */
  const gboolean good = tiny_json_visit (text->str, (gssize) text->len, pass, NULL, &error);
  g_assert_cmpint (clock () - begin, <, MOST_S * CLOCKS_PER_SEC);
  g_assert_no_error (error);
  g_assert_true (good);
  g_assert_null (parse (text->str, &error));
  g_assert_nonnull (strstr (error->message, "more than 4096 members in one object"));
  g_clear_error (&error);
  g_autofree char *inner = g_strconcat ("{\"a\":", text->str, "}", NULL);
  g_assert_false (tiny_json_visit (inner, -1, pass, NULL, &error));
  g_assert_nonnull (strstr (error->message, "more than 4096 members in one object"));
}

/* A number has as many digits as it needs, and no memory of its own beyond that. */
static void
test_long_numbers (void)
{
  for (guint n = 1020; n <= 1021; n++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *digits = g_strnfill (n, '0');
    g_autofree char *text = g_strconcat ("{\"a\":-1.", digits, "5}", NULL);
    g_autoptr (JsonNode) root = parse (text, &error);
    if (n == 1020)
      g_assert_no_error (error);
    else
      g_assert_nonnull (strstr (error->message, "a number of more than 1024 bytes at byte 5"));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/plugin/json/read", test_read);
  g_test_add_func ("/plugin/json/refused", test_refused);
  g_test_add_func ("/plugin/json/depth", test_depth);
  g_test_add_func ("/plugin/json/visit", test_visit);
  g_test_add_func ("/plugin/json/memory", test_memory);
  g_test_add_func ("/plugin/json/chosen-names", test_chosen_names);
  g_test_add_func ("/plugin/json/long-numbers", test_long_numbers);
  return g_test_run ();
}
