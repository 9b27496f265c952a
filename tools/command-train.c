/* SPDX-License-Identifier: MIT
 *
 * command-train.c: tinycore train fashion-mnist. */
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/tiny-debug.h"
#include "engine/tiny-runtime.h"
#include "tiny.h"
#include "tools/commands.h"

enum {
  DEFAULT_BATCH = 128,
  DEFAULT_SEED = 1,
  TEST_BATCH = 500,
  MAX_BATCH = 60000,
  IMAGE_SIDE = 28,
  IMAGE_ELEMENTS = IMAGE_SIDE * IMAGE_SIDE,
  N_EXAMPLES = 16, /* that go with a saved network */
  UNSET = G_MININT
};

static TinyOptimizer *
make_adam (TinyTensor *const *parameters, guint n, double rate)
{
  return tiny_adam_new (parameters, n, rate, 0.9, 0.999, 1e-8, 0);
}

static TinyOptimizer *
make_sgd (TinyTensor *const *parameters, guint n, double rate)
{
  return tiny_sgd_new (parameters, n, rate, 0.9, 0, FALSE);
}

/* What --optimizer names, with the rate each has without --lr. */
typedef struct {
  const char *name;
  double rate;
  TinyOptimizer *(*make) (TinyTensor *const *parameters, guint n, double rate);
} Optimizer;
static const Optimizer optimizers[]
    = { { "adam", 1e-3, make_adam }, { "sgd", 1e-2, make_sgd } };

/* The first one for no name, NULL for one that is not there. */
static const Optimizer *
find_optimizer (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (optimizers); i++)
    if (name == NULL || g_str_equal (name, optimizers[i].name))
      return &optimizers[i];
  return NULL;
}

/* By label, as the data set's authors call them. */
static const char class_names[] = "T-shirt/top\nTrouser\nPullover\nDress\nCoat\nSandal\nShirt\n"
                                  "Sneaker\nBag\nAnkle boot";

typedef struct {
  int n_epochs, n_steps, batch;
  gint64 seed;
  double rate; /* UNSET: the optimizer's own */
  char *optimizer, *directory, *save;
  gboolean json, is_silent, no_test;
} Options;

/* One run's state. */
typedef struct {
  const Options *options;
  TinyDataSet data;
  TinyLoader *batches;
  TinyModule *net;
  TinyOptimizer *optimizer;
  TinyTrainer *trainer;
  guint n_steps;
  GArray *ms; /* of each step */
  double loss;
} Run;

static void
run_clear (Run *self)
{
  g_clear_object (&self->trainer);
  g_clear_object (&self->optimizer);
  g_clear_object (&self->net);
  g_clear_object (&self->batches);
  tiny_data_set_clear (&self->data);
  g_clear_pointer (&self->ms, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

/* The network is made for images of 28×28, and a batch has images that differ. */
static gboolean
check_data (const Options *options, const TinyDataSet *data, GError **error)
{
  const gint64 *shape = data->images.shape;
  if (shape[1] != 28 || shape[2] != 28)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "train: the network takes images of 28×28, the data set has %" G_GINT64_FORMAT
                 "×%" G_GINT64_FORMAT,
                 shape[1], shape[2]);
  else if (options->batch > shape[0])
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "train: --batch %d is more than the %" G_GINT64_FORMAT
                 " images of the data set",
                 options->batch, shape[0]);
  else
    return TRUE;
  return FALSE;
}

/* The largest size, up to @most, that leaves no image of the test set out. */
static guint
test_batch (const TinyDataSet *data, gint64 most)
{
  gint64 n = data->test_images.shape[0], batch = MIN (n, most);
  while (n % batch != 0)
    batch--;
  return (guint) batch;
}

static gboolean
set_up (Run *self, GError **error)
{
  const Options *options = self->options;
  const gint64 image[] = { 1, 28, 28 };
  if (tiny_runtime_get_default_device (error) == NULL
      || !tiny_data_set_load ("fashion-mnist", options->directory, &self->data, error)
      || !check_data (options, &self->data, error))
    return FALSE;
  self->batches
      = tiny_loader_new (self->data.images.data, self->data.labels.data, image, 3,
                         (guint) options->batch, TRUE, (guint64) options->seed, error);
  if (self->batches == NULL)
    return FALSE;
  tiny_tensor_manual_seed ((guint64) options->seed);
  self->net = tiny_image_classifier_new (self->data.n_classes);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (self->net);
  const Optimizer *optimizer = find_optimizer (options->optimizer);
  self->optimizer = optimizer->make ((TinyTensor *const *) parameters->pdata, parameters->len,
                                     options->rate == UNSET ? optimizer->rate : options->rate);
  self->trainer = tiny_trainer_new (self->net, self->optimizer);
  self->n_steps = options->n_steps != UNSET
                      ? (guint) options->n_steps
                      : (guint) (options->n_epochs != UNSET ? options->n_epochs : 1)
                            * tiny_loader_get_n_batches (self->batches);
  self->ms = g_array_new (FALSE, FALSE, sizeof (double));
  return TRUE;
}

static void
show_progress (const Run *self, guint step, gint64 start_ns)
{
  double seconds = (double) (tiny_debug_now_ns () - start_ns) * 1e-9;
  double rate = (double) (step + 1) * self->options->batch / seconds;
  double left = seconds / (step + 1) * (self->n_steps - step - 1);
  gboolean last = step + 1 == self->n_steps;
  if (self->options->json) {
    if (step % 50 == 0 || last)
      printf ("{\"step\": %u, \"loss\": %.6f, \"images_per_second\": %.1f}\n", step + 1,
              self->loss, rate);
  } else if (isatty (STDOUT_FILENO)) {
    printf ("\rstep %u of %u   loss %.4f   %.0f images/s   %.0f s left \033[K%s", step + 1,
            self->n_steps, self->loss, rate, left, last ? "\n" : "");
  } else if (step % 50 == 0 || last) {
    printf ("step %u of %u   loss %.4f   %.0f images/s   %.0f s left\n", step + 1,
            self->n_steps, self->loss, rate, left);
  }
  fflush (stdout);
}

static gboolean
train (Run *self, GError **error)
{
  guint per_epoch = tiny_loader_get_n_batches (self->batches);
  gint64 start = tiny_debug_now_ns ();
  for (guint step = 0; step < self->n_steps; step++) {
    g_autoptr (TinyTensor) x = NULL, y = NULL;
    gint64 begin = tiny_debug_now_ns ();
    if (step % per_epoch == 0)
      tiny_loader_start_epoch (self->batches, step / per_epoch);
    tiny_loader_next (self->batches, &x, &y);
    if (!tiny_trainer_step (self->trainer, x, y, &self->loss, error))
      return FALSE;
    if (!isfinite (self->loss)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "train: the loss became %g at step %u; try a smaller --lr", self->loss,
                   step + 1);
      return FALSE;
    }
    double ms = (double) (tiny_debug_now_ns () - begin) * 1e-6;
    g_array_append_val (self->ms, ms);
    if (!self->options->is_silent)
      show_progress (self, step, start);
  }
  return TRUE;
}

/* The part of the test images that is classified. A device whose memory a batch is too large for is given a smaller one,
 * which changes no result. */
static gboolean
evaluate (Run *self, double *out_accuracy, GError **error)
{
  const gint64 image[] = { 1, IMAGE_SIDE, IMAGE_SIDE };
  for (guint batch = test_batch (&self->data, TEST_BATCH);;
       batch = test_batch (&self->data, batch / 2)) {
    g_autoptr (GError) failure = NULL;
    g_autoptr (TinyLoader) tests
        = tiny_loader_new (self->data.test_images.data, self->data.test_labels.data, image, 3,
                           batch, FALSE, 0, &failure);
    if (tests != NULL && tiny_trainer_evaluate (self->trainer, tests, out_accuracy, &failure))
      return TRUE;
    if (batch > 1 && g_error_matches (failure, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY))
      continue;
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

/* The median of the replayed steps: the first two compute and record. */
static double
median_ms (GArray *ms)
{
  guint skip = ms->len > 4 ? 2 : 0;
  g_autofree double *sorted
      = g_memdup2 (&g_array_index (ms, double, skip), (ms->len - skip) * sizeof (double));
  qsort (sorted, ms->len - skip, sizeof (double), compare_doubles);
  return sorted[(ms->len - skip) / 2];
}

static void
show_summary (const Run *self, double accuracy)
{
  const char *device = tiny_runtime_get_default_device (NULL);
  double first = g_array_index (self->ms, double, 0), median = median_ms (self->ms);
  guint n_kernels = tiny_trainer_get_n_kernels (self->trainer);
  g_autofree char *tested = self->options->no_test ? g_strdup ("")
                            : self->options->json
                                ? g_strdup_printf ("\"test_accuracy\": %.6f, ", accuracy)
                                : g_strdup_printf ("test accuracy %.4f ", accuracy);
  if (self->options->json) {
    printf ("{\"device\": \"%s\", \"steps\": %u, \"loss\": %.6f, %s"
            "\"ms_per_step_median\": %.4f, \"first_step_ms\": %.3f, \"kernels\": %u}\n",
            device, self->n_steps, self->loss, tested, median, first, n_kernels);
    return;
  }
  printf ("%safter %u steps on %s: %.1f ms a step, %u kernels each\n", tested, self->n_steps,
          device, median, n_kernels);
  printf (
      "next: --epochs 5 for more accuracy; DEV=CPU:CLANG for another compiler; DEBUG=2 to see "
      "every kernel;\n      tinycore bench matmul:1024; tinycore devices; README.md for the "
      "rest\n");
}

/* ---- the trained network as a model ---- */

/* Test images as the model takes them: floats. */
static GBytes *
make_examples (const TinyDataSet *data)
{
  gsize n = (gsize) MIN (data->test_images.shape[0], N_EXAMPLES) * IMAGE_ELEMENTS;
  const guint8 *pixels = g_bytes_get_data (data->test_images.data, NULL);
  float *values = g_new (float, n);
  for (gsize i = 0; i < n; i++)
    values[i] = pixels[i];
  return g_bytes_new_take (values, n * sizeof (float));
}

/* One image to its probabilities, as the network is used and not trained. */
static TinyModel *
make_model (const Run *self, GError **error)
{
  const gint64 shape[] = { 1, 1, IMAGE_SIDE, IMAGE_SIDE };
  const char *const inputs[] = { "image" }, *const outputs[] = { "probabilities" };
  g_autoptr (TinyTensor) image
      = g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, shape, G_N_ELEMENTS (shape)));
  tiny_module_set_training (self->net, FALSE);
  g_autoptr (TinyTensor) result
      = g_object_ref_sink (tiny_tensor_softmax (tiny_module_forward (self->net, image), 1));
  g_autoptr (TinyModel) model
      = tiny_model_new (&image, inputs, 1, &result, outputs, 1, self->net, error);
  if (model == NULL)
    return NULL;
  g_autoptr (GBytes) examples = make_examples (&self->data);
  tiny_model_set_metadata (model, "classes", class_names);
  return tiny_model_set_examples (model, "image", examples, error) ? g_steal_pointer (&model)
                                                                   : NULL;
}

static gboolean
save (const Run *self, GError **error)
{
  if (self->options->save == NULL)
    return TRUE;
  g_autoptr (TinyModel) model = make_model (self, error);
  return model != NULL && tiny_model_save (model, self->options->save, error);
}

static int
run (const Options *options)
{
  g_auto (Run) self = { .options = options };
  GError *error = NULL;
  double accuracy = 0;
  if (!set_up (&self, &error) || !train (&self, &error)
      || (!options->no_test && !evaluate (&self, &accuracy, &error)) || !save (&self, &error))
    return tinycore_fail (error);
  show_summary (&self, accuracy);
  return 0;
}

gboolean
tinycore_train_briefly (const char *directory, GError **error)
{
  const Options options = { .n_epochs = UNSET,
                            .n_steps = 2,
                            .batch = DEFAULT_BATCH,
                            .seed = DEFAULT_SEED,
                            .rate = UNSET,
                            .directory = (char *) directory,
                            .is_silent = TRUE };
  g_auto (Run) self = { .options = &options };
  double accuracy;
  return set_up (&self, error) && train (&self, error) && evaluate (&self, &accuracy, error);
}

static const char *
check (const Options *options, int argc, char **argv)
{
  if (argc < 2)
    return "name what to train: tinycore train fashion-mnist";
  if (argc > 2)
    return "train takes one name: tinycore train fashion-mnist [--steps N] …";
  if (!g_str_equal (argv[1], TINYCORE_TRAINABLE))
    return "there is one network to train: fashion-mnist";
  if (options->n_epochs != UNSET && options->n_steps != UNSET)
    return "--epochs or --steps, not both";
  if ((options->n_epochs < 1 && options->n_epochs != UNSET) || options->n_epochs > 1000000
      || (options->n_steps < 1 && options->n_steps != UNSET))
    return "--epochs and --steps are at least 1";
  if (options->batch < 1 || options->batch > MAX_BATCH)
    return "--batch is between 1 and 60000";
  if (options->save != NULL && !g_str_has_suffix (options->save, ".tir"))
    return "--save takes a file that ends in .tir";
  g_autofree char *folder = options->save != NULL ? g_path_get_dirname (options->save) : NULL;
  if (folder != NULL && g_access (folder, W_OK) != 0)
    return "--save takes a file in a folder that is there and can be written to";
  if (options->rate != UNSET && (!(options->rate > 0) || !isfinite (options->rate)))
    return "--lr is a positive number";
  if (find_optimizer (options->optimizer) == NULL)
    return "--optimizer is adam or sgd";
  return NULL;
}

int
tinycore_train (int argc, char **argv)
{
  Options options = { .n_epochs = UNSET,
                      .n_steps = UNSET,
                      .batch = DEFAULT_BATCH,
                      .seed = DEFAULT_SEED,
                      .rate = UNSET };
  int status = 0;
  const GOptionEntry entries[] = {
    { "epochs", 0, 0, G_OPTION_ARG_INT, &options.n_epochs, "times through the data (1)", "N" },
    { "steps", 0, 0, G_OPTION_ARG_INT, &options.n_steps, "steps instead of epochs", "N" },
    { "batch", 0, 0, G_OPTION_ARG_INT, &options.batch, "images a step (128)", "N" },
    { "optimizer", 0, 0, G_OPTION_ARG_STRING, &options.optimizer,
      "adam, or sgd with a momentum of 0.9 (adam)", "NAME" },
    { "lr", 0, 0, G_OPTION_ARG_DOUBLE, &options.rate, "learning rate (adam 0.001, sgd 0.01)",
      "X" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &options.seed, "of weights and data order (1)", "N" },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, &options.directory, "folder of the IDX files",
      "DIR" },
    { "save", 0, 0, G_OPTION_ARG_FILENAME, &options.save,
      "file ending in .tir for the trained network, see tinycore export", "FILE" },
    { "no-test", 0, 0, G_OPTION_ARG_NONE, &options.no_test,
      "leave out the test images and their accuracy", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, "one JSON object a line", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "fashion-mnist",
                       "Trains a small convolutional network on Fashion-MNIST.", entries,
                       &status))
    return status;
  const char *wrong = check (&options, argc, argv);
  if (wrong != NULL) {
    g_printerr ("tinycore: %s\n", wrong);
    status = EXIT_USAGE;
  } else {
    status = run (&options);
  }
  g_free (options.optimizer);
  g_free (options.directory);
  g_free (options.save);
  return status;
}
