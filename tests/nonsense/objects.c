/* SPDX-License-Identifier: MIT
 *
 * objects.c: objects that work, and now and then none, or one of another type, see things.h. */
#include "things.h"

static GPtrArray *kept; /* objects of this episode */

static TinyTensor *
numbers (Chance *c, gint64 n, gint64 m)
{
  TinyTensor *tensor
      = g_object_ref_sink (tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ n, m }, 2, 0.5));
  g_ptr_array_add (c->made, tensor);
  return tensor;
}

static TinyModule *
make_network (void)
{
  TinyModule *network = tiny_sequential_new ();
  tiny_sequential_append (network, tiny_linear_new (3, 4, TRUE));
  tiny_sequential_append (network, tiny_batch_norm_new (4, 1e-5, 0.1, TRUE, TRUE));
  tiny_sequential_append (network, tiny_activation_new ("relu"));
  tiny_sequential_append (network, tiny_linear_new (4, 2, FALSE));
  return network;
}

static gpointer
make_module (Chance *c)
{
  switch (chance_int (c, 10)) {
  case 0:
    return tiny_lstm_new (3, 2, 2, TRUE, FALSE, 0.5, TRUE, 1);
  case 1:
    return tiny_embedding_new (5, 3);
  case 2:
    return tiny_conv2d_new (2, 3, 2, 1, 0, 1, TRUE);
  case 3:
    return tiny_transformer_stack_new (tiny_layer_norm_new ((gint64[]){ 4 }, 1, 1e-5, TRUE));
  case 4:
    return tiny_transformer_encoder_layer_new (4, 2, 8, 0.1, "relu", 1e-5, TRUE, FALSE);
  case 5:
    return tiny_multihead_attention_new (4, 2, 0, TRUE, 4, 4, TRUE);
  case 6:
    return tiny_linear_new (3, -1, TRUE);
  case 7:
    return tiny_linear_new (3, 3, TRUE);
  default:
    return make_network ();
  }
}

static gpointer
make_optimizer (Chance *c)
{
  TinyTensor *parameters[] = { numbers (c, 2, 3), numbers (c, 3, 3) };
  gboolean has_gradients = chance_int (c, 4) != 0;
  for (guint i = 0; i < 2; i++) {
    tiny_tensor_set_requires_grad (parameters[i], TRUE);
    if (has_gradients)
      tiny_tensor_set_grad (parameters[i], numbers (c, 2 + i, 3), NULL);
  }
  switch (chance_int (c, 5)) {
  case 0:
    return tiny_adamw_new (parameters, 2, 0.1, 0.9, 0.999, 1e-8, 0.01);
  case 1:
    return tiny_muon_new (parameters, 2, 0.1, 0.9, 0, 2, TRUE);
  case 2:
    return tiny_nadam_new (parameters, 2, 0.1, 0.9, 0.999, 1e-8, 0, 0.004);
  case 3:
    return tiny_sgd_new (parameters, 2, -1, 0, 0, FALSE);
  default:
    return tiny_sgd_new (parameters, 2, 0.1, 0.9, 0, FALSE);
  }
}

static gpointer
make_scheduler (Chance *c)
{
  TinyOptimizer *optimizer = chance_thing (c, TINY_TYPE_OPTIMIZER);
  if (!TINY_IS_OPTIMIZER (optimizer))
    return NULL;
  switch (chance_int (c, 4)) {
  case 0:
    return tiny_one_cycle_lr_new (optimizer, 0.5, 4, 0.25, 25, 1e4, NULL);
  case 1:
    return tiny_reduce_lr_on_plateau_new (optimizer, FALSE, 0.5, 0, 1e-4, 0, 0, NULL);
  case 2:
    return tiny_cosine_annealing_warm_restarts_new (optimizer, 2, 2, 0, NULL);
  default:
    return tiny_step_lr_new (optimizer, 2, 0.5, NULL);
  }
}

static gpointer
make_loader (Chance *c)
{
  static const guint8 bytes[36];
  g_autoptr (GBytes) items = g_bytes_new_static (bytes, 36),
                     labels = g_bytes_new_static (bytes, 6);
  if (chance_int (c, 3) != 0)
    return tiny_loader_new (items, labels, (gint64[]){ 2, 3 }, 2, 2, TRUE, 1, NULL);
  TinyLoader *loader = tiny_loader_new_empty (6, 4, NULL);
  tiny_loader_add_field (loader, TINY_DTYPE_F32, (gint64[]){ 2 }, 1, NULL);
  tiny_loader_set_function (loader, chance_tiny_item_function (c), NULL, NULL);
  tiny_loader_set_prefetch (loader, chance_int (c, 3));
  return loader;
}

static gpointer
make_jit (Chance *c)
{
  return tiny_jit_new (chance_tiny_jit_function (c), g_malloc (1), g_free, chance_int (c, 3));
}

static gpointer
make_recorder (Chance *c)
{
  return tiny_recorder_new ();
}

static gpointer
make_trainer (Chance *c)
{
  g_autoptr (TinyModule) network = make_network ();
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (network);
  g_autoptr (TinyOptimizer) optimizer = tiny_sgd_new ((TinyTensor *const *) parameters->pdata,
                                                      parameters->len, 0.1, 0, 0, FALSE);
  return tiny_trainer_new (network, optimizer);
}

TinyModel *
make_model (void)
{
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, (gint64[]){ 2, 3 }, 2));
  g_autoptr (TinyModule) network = tiny_linear_new (3, 2, TRUE);
  g_autoptr (GPtrArray) all = tiny_module_get_parameters (network);
  g_ptr_array_add (all, x);
  tiny_tensor_realize_many ((TinyTensor *const *) all->pdata, all->len, NULL);
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (network, x));
  return tiny_model_new (&x, (const char *[]){ "x" }, 1, &y, (const char *[]){ "y" }, 1,
                         network, NULL);
}

static gpointer
make_any_model (Chance *c)
{
  return make_model ();
}

static gpointer
make_variable (Chance *c)
{
  return tiny_variable_new ("n", 1, chance_int (c, 2) ? 4 : -4);
}

static gpointer
make_progress (Chance *c)
{
  return tiny_progress_new ("x", chance_count (c), TINY_PROGRESS_NEVER);
}

static gpointer
make_grad_scaler (Chance *c)
{
  return tiny_grad_scaler_new (2, 2, 0.5, 2);
}

static const struct {
  GType (*type) (void);
  gpointer (*make) (Chance *c);
} makers[] = {
  { tiny_module_get_type, make_module },
  { tiny_optimizer_get_type, make_optimizer },
  { tiny_scheduler_get_type, make_scheduler },
  { tiny_loader_get_type, make_loader },
  { tiny_jit_get_type, make_jit },
  { tiny_recorder_get_type, make_recorder },
  { tiny_trainer_get_type, make_trainer },
  { tiny_model_get_type, make_any_model },
  { tiny_variable_get_type, make_variable },
  { tiny_progress_get_type, make_progress },
  { tiny_grad_scaler_get_type, make_grad_scaler },
};

/* One that nobody made: as any object is, or disposed of. */
static gpointer
make_bare (Chance *c, GType type)
{
  gpointer thing
      = chance_int (c, 2) == 0 && !G_TYPE_IS_ABSTRACT (type) ? g_object_new (type, NULL) : NULL;
  for (guint i = 0; thing == NULL && i < G_N_ELEMENTS (makers); i++)
    if (makers[i].type () == type && (thing = makers[i].make (c)) != NULL)
      g_object_run_dispose (thing);
  g_string_append (c->text, "bare ");
  return thing;
}

/* The last of that type, or a new one; seldom anything, none, or one that nobody made. */
gpointer
chance_thing (Chance *c, GType type)
{
  guint kind = chance_int (c, 20);
  gpointer thing = NULL;
  if (kind == 1 && kept->len > 0)
    thing = kept->pdata[chance_int (c, kept->len)];
  if (kind == 2 && (thing = make_bare (c, type)) != NULL)
    g_ptr_array_add (kept, thing);
  for (guint i = kept->len; kind >= 5 && thing == NULL && i-- > 0;)
    thing = g_type_is_a (G_OBJECT_TYPE (kept->pdata[i]), type) ? kept->pdata[i] : NULL;
  for (guint i = 0; kind > 0 && thing == NULL && i < G_N_ELEMENTS (makers); i++)
    if (makers[i].type () == type && (thing = makers[i].make (c)) != NULL)
      g_ptr_array_add (kept, thing);
  g_string_append_printf (c->text, "%s, ", thing != NULL ? G_OBJECT_TYPE_NAME (thing) : "NULL");
  return thing;
}

gpointer
chance_things (Chance *c, GType type, guint *out_n)
{
  *out_n = chance_int (c, 6) == 0 ? 1000 : chance_int (c, 4);
  if (*out_n == 1000 || chance_int (c, 6) == 0)
    return NULL;
  gpointer *list = g_new0 (gpointer, *out_n + 1);
  g_ptr_array_add (c->lists, list);
  for (guint i = 0; i < *out_n; i++)
    list[i] = chance_thing (c, type);
  return list;
}

void
keep_thing (Chance *c, gpointer thing, gboolean wanted)
{
  if (thing == NULL && wanted)
    g_error ("%s (%s): there is no result", c->name, c->text->str);
  if (thing != NULL)
    g_ptr_array_add (kept, thing);
}

void
forget_things (void)
{
  g_clear_pointer (&kept, g_ptr_array_unref);
  kept = g_ptr_array_new_with_free_func (g_object_unref);
}
