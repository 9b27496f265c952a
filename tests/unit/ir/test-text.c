/* SPDX-License-Identifier: MIT
 *
 * test-text.c: what is printed parses to the identical node, and what is malformed is refused with
 * a place. */
#include "ir/tiny-text.h"

#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "ir/tiny-check.h"
#include "ir/tiny-shape.h"
#include "random-graph.h"

static TinyNode *
parse (TinyGraph *graph, const char *text)
{
  g_autoptr (GError) error = NULL;
  TinyNode *node = tiny_graph_parse (graph, text, &error);
  if (node == NULL)
    g_error ("%s\n%s", error->message, text);
  return node;
}

/* The example of docs/ir.md. */
static void
test_example (void)
{
  static const char *const text = "// stage: kernel\n"
                                  "%0 = param.f32{slot=0, shape=[1024]}\n"
                                  "%1 = range.index{number=0, kind=loop}(1024)\n"
                                  "%2 = load.f32(%0, %1)\n"
                                  "%3 = store(%0, %1, add.f32(%2, 1.0))\n"
                                  "sink{name=\"add_one\"}(%3)\n";
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *root = parse (graph, text);
  g_assert_cmpint (root->op, ==, TINY_OP_SINK);
  g_assert_cmpstr (root->text, ==, "add_one");
  g_autofree char *printed = tiny_graph_print (graph, root);
  g_assert_cmpstr (printed, ==, strchr (text, '\n') + 1);
}

/* 2,000 random graphs of every op and dtype: the same pointer in the same graph, the same text and
 * digest in another. */
static void
test_random (void)
{
  guint n_of_op[TINY_N_OPS] = { 0 }, n_of_dtype[TINY_N_DTYPES] = { 0 };
  for (guint i = 0; i < 2000; i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new (), other = tiny_graph_new ();
    g_autoptr (GRand) rand = g_rand_new_with_seed (i);
    TinyNode *root = random_graph (graph, rand, 60);
    g_autofree char *text = tiny_graph_print (graph, root);
    if (parse (graph, text) != root) {
      CASE_FAILS ("seed %u does not read back as the same node:\n%s", i, text);
      continue;
    }
    TinyNode *copy = parse (other, text);
    g_autofree char *again = tiny_graph_print (other, copy);
    g_assert_cmpstr (again, ==, text);
    guint8 a[16], b[16];
    tiny_node_digest (graph, root, a);
    tiny_node_digest (other, copy, b);
    g_assert_cmpmem (a, 16, b, 16);
    g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
    for (guint j = 0; j < order->len; j++) {
      TinyNode *node = order->pdata[j];
      g_autofree char *shown = tiny_node_to_string (node);
      g_assert_true (g_utf8_validate (shown, -1, NULL));
      n_of_op[node->op]++;
      n_of_dtype[node->dtype]++;
    }
  }
  for (guint i = 0; i < TINY_N_OPS; i++)
    if (n_of_op[i] < 5)
      CASE_FAILS ("%s occurred %u times", tiny_op_to_string (i), n_of_op[i]);
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    g_assert_cmpuint (n_of_dtype[i], >, 100);
}

/* Every op and text of the rules table is there. */
static void
test_rules (void)
{
  for (guint i = 0; i < TINY_N_OPS; i++) {
    g_assert_nonnull (tiny_op_rules[i].kinds);
    g_assert_cmpuint (tiny_op_rules[i].stages, !=, 0);
  }
}

/* ---- malformed input ---- */
static void
test_refused (void)
{
  static const struct {
    const char *text, *place;
  } cases[] = {
    { "", "1:1: there is no statement" },
    { "// nothing\n", "2:1: there is no statement" },
    { "foo.f32(1)", "1:1: unknown op 'foo'" },
    { "neg.f33(1.0)", "1:5: expected a dtype, found 'f33'" },
    { "neg.f32x0(1.0)", "1:5: expected a dtype" },
    { "neg.f32x99999999999999999999(1.0)", "1:5: more than 65535 lanes" },
    { "neg.f32(1.0", "1:12: expected ')', found the end" },
    { "neg.f32(1.0, 2.0)", "1:1: neg: wants 1 sources, has 2" },
    { "add.f32(1.0, 2:i32)", "1:1: add: source 2 should be f32, is i32" },
    { "add.f32x4(1.0, 2.0:f32)", "1:1: add: source 2 should have 4 lanes, has 1" },
    { "cmplt.f32(1:f32, 2:f32)", "1:1: cmplt: a comparison is bool, not f32" },
    { "where.f32(1:i32, 1.0, 2.0)", "1:1: where: source 1 should be bool, is i32" },
    { "and.f32(1.0, 2.0)", "1:1: and: does not take f32" },
    { "bitcast.f64(1:i32)", "1:1: bitcast: i32 and f64 differ in size" },
    { "%0 = neg.f32(1.0)\n  neg.f32(%1)", "2:11: %1 is not defined above" },
    { "%0 = 1:i32\n%0 = 2:i32", "2:1: %0 is defined twice" },
    { "%0 = neg.f32(%0)", "1:14: %0 is not defined above" },
    { "neg.f32(1.0) neg.f32(2.0)", "1:14: expected a new line" },
    { "1", "1:1: this number needs a dtype, as in 1:i32" },
    { "cast.f32(1)", "1:10: this number needs a dtype" },
    { "300:u8", "1:1: the number is no value of u8" },
    { "-1:u32", "1:1: the number is no value of u32" },
    { "9223372036854775808:i64", "1:1: the number is no value of i64" },
    { "18446744073709551616:u64", "1:1: the number is no value of u64" },
    { "1.5:i32", "1:1: the number is no value of i32" },
    { "2:bool", "1:1: the number is no value of bool" },
    { "1e39:f32", "1:1: the number is no value of f32" },
    { "70000:f16", "1:1: the number is no value of f16" },
    { "inf:f8e4m3", "1:1: the number is no value of f8e4m3" },
    { "1e999:f64", "1:1: number beyond every dtype" },
    { "1e:f64", "1:3: an exponent without digits" },
    { "-", "1:1: not a number" },
    { "-true", "1:1: a bool has no sign" },
    { "1:void", "1:1: the number is no value of void" },
    { "const.u8{bits=300}", "1:1: const: its bits are not those of a u8" },
    { "param.f32{slot=0}", "1:1: param: has no shape" },
    { "param.f32{slot=0, shape=[-1]}", "1:1: param: axis 0 has size -1" },
    { "param.f32{shape=[9223372036854775807, 2]}", "1:1: param: more elements" },
    { "param.f32{shape=[4294967296, 4294967296, 0]}", "1:1: param: more elements" },
    { "param.f32{shape=[99999999999999999999]}", "1:18: integer beyond 64 bits" },
    { "param.f32{slot=0, slot=1, shape=[1]}", "1:19: attribute given twice" },
    { "param.f32{kind=loop, shape=[1]}", "1:11: param has no attribute 'kind'" },
    { "param.index{slot=0, shape=[1]}", "1:1: param: does not give index" },
    { "sink{name=\"a}", "1:14: text without an end" },
    { "sink{name=\"\\q\"}", "1:12: unknown escape" },
    { "sink{name=\"\\x00\"}", "1:12: a text cannot hold \\x00" },
    { "sink.f32", "1:1: sink: is void, not f32" },
    { "%x = param.f32{shape=[2, 3]}\nadd.f32(%x, param.f32{shape=[3, 2]})",
      "2:1: add: shapes (2, 3) and (3, 2) differ" },
    { "reshape.f32{shape=[5]}(param.f32{shape=[2, 3]})",
      "1:1: reshape: (2, 3) and (5,) differ" },
    { "reshape.f32(param.f32{shape=[2, 3]})", "1:1: reshape: has no list" },
    { "expand.f32{shape=[3, 3]}(param.f32{shape=[2, 3]})",
      "1:1: expand: (2, 3) does not expand" },
    { "permute.f32{axes=[0, 0]}(param.f32{shape=[2, 3]})", "1:1: permute: axis 0 twice" },
    { "permute.f32{axes=[0, 2]}(param.f32{shape=[2, 3]})", "1:1: permute: axis 2 of 2" },
    { "permute.f32{axes=[0]}(param.f32{shape=[2, 3]})", "1:1: permute: 1 numbers for 2 axes" },
    { "flip.f32{axes=[-1]}(param.f32{shape=[2, 3]})", "1:1: flip: axis -1 of 2" },
    { "pad.f32{pairs=[0, -1]}(param.f32{shape=[2]})", "1:1: pad: pads axis 0 by 0 and -1" },
    { "pad.f32{pairs=[9223372036854775807, 9]}(param.f32{shape=[2]})",
      "1:1: pad: pads axis 0" },
    { "shrink.f32{pairs=[1, 3]}(param.f32{shape=[2]})",
      "1:1: shrink: 1 to 3 of axis 0 of size 2" },
    { "shear.f32{axis=0, along=1}(param.f32{shape=[2, 2]})",
      "1:1: shear wants all of axis,along" },
    { "shear.f32{ints=[0, 1]}(param.f32{shape=[2, 2]})", "1:1: shear: 2 numbers, not 7" },
    { "shear.f32{axis=0, along=1, mul=1, step=9223372036854775807, offset=0, divisor=1, size=2}"
      "(param.f32{shape=[2, 2]})",
      "1:1: shear: reads beyond" },
    { "shear.f32{axis=0, along=1, mul=1, step=1, offset=0, divisor=0, "
      "size=2}(param.f32{shape=[2, 2]})",
      "1:1: shear: divisor 0" },
    { "shear.f32{axis=0, axis=1}(param.f32{shape=[2, 2]})", "1:19: attribute given twice" },
    { "reduce.f32{op=sub, axes=[0]}(param.f32{shape=[2]})", "1:1: reduce: combines by" },
    { "reduce.f32{op=nope, axes=[0]}(param.f32{shape=[2]})", "1:15: expected an op" },
    { "reduce.f32{op=add, axes=[1]}(param.f32{shape=[2]})", "1:1: reduce: axis 1 of 1" },
    { "reduce.f32{op=add}(1.0, 2:index)", "1:1: reduce: source 2 should be a range" },
    { "range.index{number=-1}(4)", "1:20: a range's number has 32 bits" },
    { "range.index{kind=fast}(4)", "1:18: expected a kind of range" },
    { "range.index{arg=99999999999}(4)", "1:1: range: 23 is no kind" },
    { "range.index(4.5)", "1:13: the number is no value of index" },
    { "end(1:i32)", "1:1: end: closes range, not const" },
    { "load.f32(1:f32, 2)", "1:1: load: const is no memory" },
    { "load.f32(param.f32{shape=[2]}, 1.0:f32)", "1:1: load: an index is an integer" },
    { "load.f32(param.f32{shape=[2]}, 1, true)", "1:1: load: a gate wants an alternative" },
    { "store(param.f32{shape=[2]}, 1, 1:i32)", "1:1: store: source 3 should be f32, is i32" },
    { "vector.f32x4(1.0, 2.0)", "1:1: vector: 2 sources for 4 lanes" },
    { "extract.f32{lane=4}(1.0:f32x4)", "1:1: extract: lane 4 of 4" },
    { "assign.f32(param.f32{shape=[2]}, param.f32{shape=[3]})", "1:1: assign: shapes" },
    { "iota.i32", "1:1: iota: has no shape" },
    { "neg.f32(\xff\xfe)", "1:9: expected an op" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_autoptr (GError) error = NULL;
    TinyNode *node = tiny_graph_parse (graph, cases[i].text, &error);
    if (node != NULL) {
      CASE_FAILS ("taken: %s", cases[i].text);
      continue;
    }
    g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
    if (!g_str_has_prefix (error->message, cases[i].place))
      g_test_fail_printf ("%s\n  gives %s\n  wanted %s", cases[i].text, error->message,
                          cases[i].place);
  }
}

static void
test_taken (void)
{
  static const char *const same[][2] = {
    { "add.f32(1, 2)", "add.f32(1.0:f32, 2.0)" },
    { "0.1:f32", "0.100000001490116:f32" },
    { "  neg.f32(\n 1.0 // one\n)\n\n", "neg.f32(1.0)" },
    { "store.void(param.f32{shape=[2]}, 1, 2)",
      "store(param.f32{slot=0, shape=[2]}, 1:index, 2.0)" },
    { "18446744073709551616:f32", "0.18446744073709551616e20:f32" },
    { "%a = 3:i32\n%b1 = neg.i32(%a)\n%b1", "neg.i32(3)" },
    { "true", "true:bool" },
    { "cmplt.bool(3, neg.i32(4))", "cmplt.bool(3:i32, neg.i32(4))" },
    { "18446744073709551615:u64", "const.u64{bits=-1}" },
    { "sink()", "sink" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (same); i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_assert_true (parse (graph, same[i][0]) == parse (graph, same[i][1]));
  }
}

static void
test_deep (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < 100000; i++)
    g_string_append (text, "neg.f32(");
  g_assert_null (tiny_graph_parse (graph, text->str, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
  g_assert_nonnull (strstr (error->message, "nested more than"));

  /* A deep graph, on the other hand, is fine: no walk recurses. */
  TinyNode *deep = tiny_node_const_float (graph, TINY_DTYPE_F32, 2);
  for (guint i = 0; i < 100000; i++)
    deep = tiny_node_unary (graph, TINY_OP_SQRT, deep);
  g_autofree char *printed = tiny_graph_print (graph, deep);
  g_assert_true (parse (graph, printed) == deep);
}

static void
test_many_ranges (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < 70000; i++)
    g_string_append_printf (text, "range.index{number=%u}(4)\n", i);
  g_assert_null (tiny_graph_parse (graph, text->str, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
}

/* ---- fuzz ---- */
static void
mutate (GRand *rand, GString *text)
{
  static const char *const tokens[] = { "%0",
                                        "%1",
                                        "(",
                                        ")",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        "=",
                                        ":",
                                        "-",
                                        "\"",
                                        "\\x",
                                        ".",
                                        "\n",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "99999999999999999999",
                                        "1e308",
                                        "nan",
                                        "inf",
                                        "true",
                                        "f32",
                                        "indexx4",
                                        "f32x65535",
                                        "bool",
                                        "void",
                                        "reduce.f32",
                                        "neg.f32(",
                                        "shape=[",
                                        "axes=[",
                                        "arg=",
                                        "ints=[]",
                                        "text=\"",
                                        "kind=loop",
                                        "shear.f32{",
                                        "pad.f32{",
                                        "const.f32{bits=",
                                        "//",
                                        "\xff",
                                        "load.f32(",
                                        "store(",
                                        "0",
                                        "1",
                                        "2",
                                        "-1" };
  guint n_edits = (guint) g_rand_int_range (rand, 1, 6);
  for (guint i = 0; i < n_edits && text->len > 0; i++) {
    gsize at = (gsize) g_rand_int_range (rand, 0, (gint32) text->len);
    gsize n = (gsize) g_rand_int_range (rand, 1, 12);
    n = MIN (n, text->len - at);
    switch (g_rand_int_range (rand, 0, 6)) {
    case 0:
      text->str[at] = (char) g_rand_int_range (rand, 1, 256);
      break;
    case 1:
      g_string_erase (text, (gssize) at, (gssize) n);
      break;
    case 2:
      g_string_truncate (text, at);
      break;
    case 3: { /* a piece of it somewhere else */
      g_autofree char *piece = g_strndup (text->str + at, n);
      g_string_insert (text, g_rand_int_range (rand, 0, (gint32) text->len), piece);
      break;
    }
    default:
      g_string_insert (text, (gssize) at,
                       tokens[g_rand_int_range (rand, 0, G_N_ELEMENTS (tokens))]);
    }
  }
}

/* 20,000 damaged texts: an error with a place, or a node that prints and reads back. */
static void
test_fuzz (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (6);
  g_autoptr (GTimer) timer = g_timer_new ();
  g_autofree char *text = NULL;
  guint n_taken = 0;
  for (guint i = 0; i < 20000; i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_autoptr (GError) error = NULL;
    if (i % 20 == 0) {
      g_free (text);
      text = tiny_graph_print (graph, random_graph (graph, rand, 15));
    }
    g_autoptr (GString) damaged = g_string_new (text);
    mutate (rand, damaged);
    TinyNode *node = tiny_graph_parse (graph, damaged->str, &error);
    if (node == NULL) {
      g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
      g_assert_true (g_ascii_isdigit (error->message[0]));
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
      continue;
    }
    n_taken++;
    g_autofree char *printed = tiny_graph_print (graph, node);
    if (parse (graph, printed) != node)
      CASE_FAILS ("does not read back:\n%s", printed);
  }
  g_test_message ("%u of 20000 were taken", n_taken);
  g_assert_cmpuint (n_taken, >, 200);
  g_assert_cmpuint (n_taken, <, 15000);
  g_assert_cmpfloat (g_timer_elapsed (timer, NULL), <, 60);
}

/* Names of one's own come back, with dots, and do not stand in the way of the printer's numbers. */
static void
test_names (void)
{
  const char *text = "%a.b_1 = param.f32{slot=0, shape=[2]}\n"
                     "%two = 2.0:f32\n"
                     "%y = neg.f32(mul.f32(%a.b_1, %two))\n"
                     "%0 = neg.f32(%y)\n"
                     "sink(%y, %0)\n";
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (GHashTable) names = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (TinyNodeMap) map = { 0 };
  TinyNode *root = tiny_graph_parse_named (graph, text, &names, &error);
  g_assert_no_error (error);
  GHashTableIter iter;
  gpointer name, node;
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, &node))
    if (tiny_text_is_name (name))
      tiny_node_map_set (&map, node, name);
  g_autofree char *printed = tiny_graph_print_named (graph, root, &map);
  g_autoptr (GHashTable) again = NULL;
  g_assert_true (tiny_graph_parse_named (graph, printed, &again, &error) == root);
  g_assert_true (g_hash_table_lookup (again, "y") == root->sources[0]);
  g_assert_nonnull (g_hash_table_lookup (again, "a.b_1"));
  g_assert_cmpint (((TinyNode *) g_hash_table_lookup (again, "two"))->op, ==, TINY_OP_CONST);
  g_assert_false (tiny_text_is_name ("12") || tiny_text_is_name ("") || tiny_text_is_name ("a.")
                  || tiny_text_is_name (".a") || tiny_text_is_name ("a b"));
}

/* A kernel that was given as text says so in its own text, and is another one than that which was not. */
static void
test_untrusted (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  guint8 digests[2][16];
  TinyNode *plain
      = parse (graph, "%i = range.index{number=0, kind=loop}(8)\n"
                      "sink{name=\"k\"}(store(param.f32{slot=0, shape=[8]}, %i, 1.0))\n");
  TinyNode *untrusted = tiny_node_sink_untrusted (graph, plain);
  g_autofree char *text = tiny_graph_print (graph, untrusted);
  g_assert_nonnull (strstr (text, "sink{arg=1, name=\"k\"}"));
  g_assert_true (parse (graph, text) == untrusted);
  g_assert_true (tiny_node_is_untrusted (untrusted) && !tiny_node_is_untrusted (plain));
  tiny_node_digest (graph, plain, digests[0]);
  tiny_node_digest (graph, untrusted, digests[1]);
  g_assert_true (memcmp (digests[0], digests[1], 16) != 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/text/names", test_names);
  g_test_add_func ("/ir/text/example", test_example);
  g_test_add_func ("/ir/text/random", test_random);
  g_test_add_func ("/ir/text/rules", test_rules);
  g_test_add_func ("/ir/text/refused", test_refused);
  g_test_add_func ("/ir/text/taken", test_taken);
  g_test_add_func ("/ir/text/deep", test_deep);
  g_test_add_func ("/ir/text/many-ranges", test_many_ranges);
  g_test_add_func ("/ir/text/fuzz", test_fuzz);
  g_test_add_func ("/ir/text/untrusted", test_untrusted);
  return g_test_run ();
}
