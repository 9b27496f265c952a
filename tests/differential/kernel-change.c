/* SPDX-License-Identifier: MIT
 *
 * kernel-change.c: reading, changing and writing terms. */
#include "kernel-change.h"

#include <string.h>

/* "%x", "1.5" or "add.f32{…}" and its operands. */
typedef struct Term Term;
struct Term {
  char *head;
  GPtrArray *operands; /* Term; NULL: none, not even () */
};

typedef struct {
  char *name; /* "%x", or NULL */
  Term *term;
} Statement;

typedef struct {
  GRand *random;
  GArray *statements; /* Statement */
  GPtrArray
      *operands; /* Term *: all terms below statements, of those before as well as after */
} Text;

/* ---- terms ---- */
static Term *
term_new (char *head)
{
  Term *self = g_new0 (Term, 1);
  self->head = head;
  return self;
}

static void
term_free (gpointer data)
{
  Term *self = data;
  g_free (self->head);
  g_clear_pointer (&self->operands, g_ptr_array_unref);
  g_free (self);
}

static Term *
term_copy (const Term *self)
{
  Term *copy = term_new (g_strdup (self->head));
  if (self->operands != NULL)
    copy->operands = g_ptr_array_new_with_free_func (term_free);
  for (guint i = 0; self->operands != NULL && i < self->operands->len; i++)
    g_ptr_array_add (copy->operands, term_copy (self->operands->pdata[i]));
  return copy;
}

/* (transfer full) of the operands */
static Term *
call (const char *op, const char *dtype, Term *x, Term *y, Term *z)
{
  Term *self = term_new (g_strdup_printf ("%s.%s", op, dtype));
  Term *const all[] = { x, y, z };
  self->operands = g_ptr_array_new_with_free_func (term_free);
  for (guint i = 0; i < G_N_ELEMENTS (all) && all[i] != NULL; i++)
    g_ptr_array_add (self->operands, all[i]);
  return self;
}

/* @self becomes @other, which is taken. */
static void
term_replace (Term *self, Term *other)
{
  Term old = *self;
  *self = *other;
  *other = old;
  term_free (other);
}

static Term *
parse_term (const char **p)
{
  *p += strspn (*p, " \n");
  const char *begin = *p;
  while (**p != 0 && strchr ("(), \n", **p) == NULL)
    *p += **p == '{' ? strcspn (*p, "}") : 1;
  Term *self = term_new (g_strndup (begin, (gsize) (*p - begin)));
  if (**p != '(')
    return self;
  self->operands = g_ptr_array_new_with_free_func (term_free);
  while (**p != 0 && **p != ')') {
    ++*p;
    if (**p != ')')
      g_ptr_array_add (self->operands, parse_term (p));
    *p += strspn (*p, " \n");
  }
  *p += **p == ')';
  return self;
}

static void
write_term (const Term *self, GString *out)
{
  g_string_append (out, self->head);
  for (guint i = 0; self->operands != NULL && i < self->operands->len; i++) {
    g_string_append (out, i == 0 ? "(" : ", ");
    write_term (self->operands->pdata[i], out);
  }
  if (self->operands != NULL)
    g_string_append (out, self->operands->len == 0 ? "()" : ")");
}

static gboolean
is_op (const Term *self, const char *op)
{
  const gsize n = strlen (op);
  return strncmp (self->head, op, n) == 0 && (self->head[n] == '.' || self->head[n] == 0);
}

static gboolean
is_number (const Term *self)
{
  return g_ascii_isdigit (self->head[0]) || self->head[0] == '-';
}

/* ---- texts ---- */
static void
list_operands (Text *self, Term *term)
{
  for (guint i = 0; term->operands != NULL && i < term->operands->len; i++) {
    g_ptr_array_add (self->operands, term->operands->pdata[i]);
    list_operands (self, term->operands->pdata[i]);
  }
}

static void
statement_clear (gpointer data)
{
  Statement *self = data;
  g_free (self->name);
  term_free (self->term);
}

static Text *
text_new (const char *text, GRand *random)
{
  Text *self = g_new0 (Text, 1);
  self->random = random;
  self->statements = g_array_new (FALSE, FALSE, sizeof (Statement));
  g_array_set_clear_func (self->statements, statement_clear);
  self->operands = g_ptr_array_new ();
  for (const char *p = text + strspn (text, " \n"); *p != 0; p += strspn (p, " \n")) {
    const char *equals = strstr (p, " = "), *line = strchr (p, '\n');
    Statement statement = { NULL, NULL };
    if (*p == '%' && equals != NULL && (line == NULL || equals < line)) {
      statement.name = g_strndup (p, (gsize) (equals - p));
      p = equals + 3;
    }
    p += strspn (p, "(), \n"); /* what is no term after a byte was changed */
    statement.term = parse_term (&p);
    g_array_append_val (self->statements, statement);
  }
  return self;
}

static void
text_free (Text *self)
{
  g_ptr_array_unref (self->operands);
  g_array_unref (self->statements);
  g_free (self);
}

static guint
pick (Text *self, guint n)
{
  return (guint) g_rand_int_range (self->random, 0, (gint32) MAX (n, 1));
}

#define PICK(self, list) ((list)[pick (self, G_N_ELEMENTS (list))])

static Statement *
any_statement (Text *self)
{
  return &g_array_index (self->statements, Statement, pick (self, self->statements->len));
}

/* "" for a number */
static char *
get_dtype (Text *self, const Term *term)
{
  const char *head = term->head;
  for (guint i = 0; *head == '%' && i < self->statements->len; i++) {
    const Statement *s = &g_array_index (self->statements, Statement, i);
    if (s->name != NULL && strcmp (s->name, term->head) == 0)
      head = s->term->head;
  }
  const char *dot = is_number (term) ? NULL : strchr (head, '.');
  return dot == NULL ? g_strdup ("") : g_strndup (dot + 1, strcspn (dot + 1, "{"));
}

/* One of many at random for which @fits, or NULL. */
static Term *
find (Text *self, gboolean (*fits) (const Term *term))
{
  for (guint tries = 0; tries < 40 && self->operands->len > 0; tries++) {
    Term *term = self->operands->pdata[pick (self, self->operands->len)];
    if (fits (term))
      return term;
  }
  return NULL;
}

/* ---- what is put in ---- */
static const char *const hostile[] = { "0",
                                       "1",
                                       "-1",
                                       "2",
                                       "3",
                                       "5",
                                       "7",
                                       "8",
                                       "15",
                                       "16",
                                       "17",
                                       "31",
                                       "32",
                                       "33",
                                       "63",
                                       "64",
                                       "65",
                                       "127",
                                       "255",
                                       "256",
                                       "-2",
                                       "-16",
                                       "-64",
                                       "1000",
                                       "65535",
                                       "2147483647",
                                       "2147483648",
                                       "-2147483648",
                                       "4294967295",
                                       "4294967296",
                                       "4294967297",
                                       "1099511627776",
                                       "1152921504606846976",
                                       "2305843009213693951",
                                       "-2305843009213693952",
                                       "4611686018427387904",
                                       "9223372036854775807",
                                       "-9223372036854775807" },
                         *const hostile_floats[]
                         = { "0.0",   "-0.0",         "1.0",  "-1.0",  "0.5",  "3.0", "16.0",
                             "1e-40", "2147483648.0", "1e19", "-1e12", "1e38", "inf", "nan" },
                         *const extents[]
                         = { "0",  "1",  "2",  "3",  "4",  "5",  "7",  "8",  "9",  "12",
                             "15", "16", "17", "31", "32", "33", "48", "64", "65", "100" },
                         *const dtypes[] = { "bool", "i8",  "u8",  "i16",  "u16", "i32", "u32",
                                             "i64",  "u64", "f16", "bf16", "f32", "f64" },
                         *const binary[]
                         = { "add", "sub", "mul", "max",  "add", "mul",      "and",     "or",
                             "xor", "shl", "shr", "idiv", "mod", "floordiv", "floormod" },
                         *const of_index[] = { "add", "sub", "mul", "max",      "add",
                                               "mul", "shl", "shr", "floordiv", "floormod" },
                         *const compare[] = { "cmplt", "cmpne", "cmpeq" },
                         *const unary[]
                         = { "neg", "neg", "sqrt", "exp2", "log2", "sin", "recip", "trunc" };

static Term *
number (Text *self, const char *dtype)
{
  const gboolean is_float = dtype[0] == 'f' || dtype[0] == 'b';
  if (strcmp (dtype, "bool") == 0)
    return term_new (g_strdup (pick (self, 2) ? "true" : "false"));
  return term_new (g_strdup (is_float ? PICK (self, hostile_floats) : PICK (self, hostile)));
}

static gboolean
is_among (const Term *term, const char *const *list, guint n)
{
  for (guint i = 0; i < n; i++)
    if (is_op (term, list[i]))
      return TRUE;
  return FALSE;
}

static gboolean
is_calculation (const Term *term)
{
  return term->operands != NULL
         && (is_among (term, binary, G_N_ELEMENTS (binary))
             || is_among (term, compare, G_N_ELEMENTS (compare))
             || is_among (term, unary, G_N_ELEMENTS (unary)));
}

static gboolean
has_several (const Term *term)
{
  return term->operands != NULL && term->operands->len > 1;
}

static gboolean
is_access (const Term *term)
{
  return has_several (term) && (is_op (term, "load") || is_op (term, "store"));
}

static gboolean
is_value (const Term *term)
{
  return !is_op (term, "store") && !is_op (term, "range") && term->head[0] != 0;
}

static void
set_head (Term *term, char *head)
{
  g_free (term->head);
  term->head = head;
}

/* ---- changes ---- */
static void
change_number (Text *self)
{
  Term *term = find (self, is_number);
  if (term == NULL)
    return;
  const char *const dtype = strpbrk (term->head, ".e") != NULL ? "f32" : "i32";
  term_replace (term, number (self, dtype));
}

static void
change_extent (Text *self)
{
  for (guint tries = 0; tries < 20; tries++) {
    Statement *s = any_statement (self);
    const char *shape = strstr (s->term->head, "shape=[");
    if (is_op (s->term, "range") && s->term->operands != NULL) {
      term_replace (s->term->operands->pdata[0], term_new (g_strdup (PICK (self, extents))));
      return;
    }
    if (shape != NULL && pick (self, 3) == 0) {
      const char *size = PICK (self, extents);
      set_head (s->term, g_strdup_printf ("%.*s[%s]}", (int) (shape + 6 - s->term->head),
                                          s->term->head, size));
      return;
    }
  }
}

/* The same dtype and attributes after another word. */
static void
change_operation (Text *self)
{
  Term *term = find (self, is_calculation);
  if (term == NULL)
    return;
  const char *rest = strchr (term->head, '.');
  const char *op = is_among (term, compare, G_N_ELEMENTS (compare)) ? PICK (self, compare)
                   : term->operands->len == 1                       ? PICK (self, unary)
                   : strncmp (rest, ".index", 6) == 0               ? PICK (self, of_index)
                                                                    : PICK (self, binary);
  set_head (term, g_strconcat (op, rest, NULL));
}

static void
swap_operands (Text *self)
{
  Term *term = find (self, has_several);
  if (term == NULL)
    return;
  gpointer *all = term->operands->pdata;
  const guint n = term->operands->len, i = pick (self, n), j = pick (self, n);
  gpointer old = all[i];
  all[i] = all[j];
  all[j] = old;
}

/* A term in place of another of its dtype; a name where it is that of the statement itself. */
static void
put_elsewhere (Text *self)
{
  Term *to = find (self, is_value);
  g_autofree char *wanted = to == NULL ? NULL : get_dtype (self, to);
  for (guint tries = 0; to != NULL && tries < 30; tries++) {
    Term *from = find (self, is_value);
    g_autofree char *dtype = get_dtype (self, from);
    if (from == to || strcmp (dtype, wanted) != 0)
      continue;
    term_replace (to, term_copy (from));
    return;
  }
}

/* (transfer full): @x with something around it */
static Term *
wrap (Text *self, Term *x, const char *dtype)
{
  const gboolean is_index = strcmp (dtype, "index") == 0;
  const char *op = is_index ? PICK (self, of_index) : PICK (self, binary);
  switch (pick (self, 8)) {
  case 0:
    return call (op, dtype, number (self, dtype), x, NULL);
  case 1:
    return call ("where", dtype,
                 call (PICK (self, compare), "bool", term_copy (x), number (self, dtype), NULL),
                 x, number (self, dtype));
  case 2:
    return call ("cast", dtype, call ("cast", PICK (self, dtypes), x, NULL, NULL), NULL, NULL);
  case 3:
    return call (is_index ? "neg" : PICK (self, unary), dtype, x, NULL, NULL);
  case 4:
    return call (op, dtype, x, term_copy (x), NULL);
  case 5:
    return call ("mulacc", dtype, x, number (self, dtype), number (self, dtype));
  default:
    return call (op, dtype, x, number (self, dtype), NULL);
  }
}

/* An index three times out of four. */
static Term *
find_index (Text *self)
{
  Term *access = pick (self, 4) > 0 ? find (self, is_access) : NULL;
  return access != NULL ? access->operands->pdata[1] : find (self, is_value);
}

static void
wrap_term (Text *self)
{
  Term *term = find_index (self);
  g_autofree char *dtype = term == NULL ? g_strdup ("") : get_dtype (self, term);
  if (*dtype != 0)
    term_replace (term, wrap (self, term_copy (term), dtype));
}

/* A number from memory in place of an index, or added to it. */
static void
read_index (Text *self)
{
  Term *access = find (self, is_access);
  for (guint tries = 0; access != NULL && tries < 20; tries++) {
    const Statement *s = any_statement (self);
    if (!is_op (s->term, "param") || s->name == NULL
        || strstr (s->term->head, "slot=0") != NULL)
      continue;
    Term *index = access->operands->pdata[1];
    g_autofree char *dtype = get_dtype (self, s->term);
    Term *loaded = call ("load", dtype, term_new (g_strdup (s->name)), term_copy (index), NULL);
    Term *read = call ("cast", "index", loaded, NULL, NULL);
    if (pick (self, 2))
      read = call (PICK (self, of_index), "index", read, term_copy (index), NULL);
    term_replace (index, read);
    return;
  }
}

static void
add_gate (Text *self)
{
  Term *access = find (self, is_access);
  if (access == NULL)
    return;
  Term *gate = call (PICK (self, compare), "bool", term_copy (access->operands->pdata[1]),
                     number (self, "index"), NULL);
  const gboolean loads = is_op (access, "load");
  g_ptr_array_set_size (access->operands, loads ? 2 : MIN (3, (gint) access->operands->len));
  g_ptr_array_add (access->operands, gate);
  g_autofree char *dtype = get_dtype (self, access);
  if (loads && pick (self, 4) > 0)
    g_ptr_array_add (access->operands, number (self, dtype));
}

static char *
replace_word (const char *text, const char *from, const char *to)
{
  g_auto (GStrv) parts = g_strsplit (text, from, -1);
  return g_strjoinv (to, parts);
}

/* ---- the whole ---- */
static char *
write_text (const Text *self)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < self->statements->len; i++) {
    const Statement *s = &g_array_index (self->statements, Statement, i);
    if (s->name != NULL)
      g_string_append_printf (out, "%s = ", s->name);
    write_term (s->term, out);
    g_string_append_c (out, '\n');
  }
  return g_string_free (out, FALSE);
}

static char *
change_terms (const char *text, GRand *random)
{
  static void (*const changes[]) (Text * self)
      = { change_number, change_extent, change_operation, swap_operands,   put_elsewhere,
          wrap_term,     wrap_term,     wrap_term,        read_index,      read_index,
          add_gate,      change_number, change_extent,    change_operation };
  Text *self = text_new (text, random);
  for (guint i = 0; i < self->statements->len; i++)
    list_operands (self, g_array_index (self->statements, Statement, i).term);
  PICK (self, changes) (self);
  char *changed = write_text (self);
  text_free (self);
  return changed;
}

/* One dtype, kind or reduction everywhere, or one byte anywhere. */
static char *
change_words (const char *text, GRand *random)
{
  static const struct {
    const char *from, *to;
  } words[] = { { "kind=loop", "kind=reduce" }, { "kind=reduce", "kind=loop" },
                { "op=add", "op=max" },         { "op=add", "op=mul" },
                { "op=max", "op=add" },         { "op=mul", "op=add" } };
  const gint32 which = g_rand_int_range (random, 0, 10);
  if (which == 0) {
    char *changed = g_strdup (text);
    const gsize n = strlen (text);
    changed[g_rand_int_range (random, 0, (gint32) n)]
        = (char) ("0123456789.,()[]{}%=\n-"[g_rand_int_range (random, 0, 21)]);
    return changed;
  }
  if (which < 4) {
    const guint i = (guint) g_rand_int_range (random, 0, G_N_ELEMENTS (words));
    return replace_word (text, words[i].from, words[i].to);
  }
  g_autofree char *from
      = g_strdup_printf (".%s", dtypes[g_rand_int_range (random, 0, G_N_ELEMENTS (dtypes))]);
  g_autofree char *to
      = g_strdup_printf (".%s", dtypes[g_rand_int_range (random, 0, G_N_ELEMENTS (dtypes))]);
  return replace_word (text, from, to);
}

char *
kernel_change (const char *text, GRand *random)
{
  char *changed = g_strdup (text);
  for (gint32 n = g_rand_int_range (random, 1, 5); n > 0; n--) {
    char *next = g_rand_int_range (random, 0, 6) == 0 ? change_words (changed, random)
                                                      : change_terms (changed, random);
    g_free (changed);
    changed = next;
  }
  return changed;
}
