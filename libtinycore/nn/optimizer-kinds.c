/* SPDX-License-Identifier: MIT
 *
 * optimizer-kinds.c: the optimisers there are, each a rule and the numbers that it begins with. */
#include "nn/optimizer-private.h"

/* An optimiser of a rule, from the numbers that are not 0. */
#define MAKE(rule, ...)                                                                        \
  tiny_optimizer_new_of (TINY_RULE_##rule, parameters, n,                                      \
                         (const double[TINY_N_SETTINGS]){ __VA_ARGS__ })
#define IS(setting, value) [TINY_SETTING_##setting] = (value)

TinyOptimizer *
tiny_sgd_new (TinyTensor *const *parameters,
              guint n,
              double lr,
              double momentum,
              double weight_decay,
              gboolean nesterov)
{
  return MAKE (SGD, IS (LR, lr), IS (MOMENTUM, momentum), IS (WEIGHT_DECAY, weight_decay),
               IS (NESTEROV, nesterov != FALSE));
}

TinyOptimizer *
tiny_lars_new (TinyTensor *const *parameters,
               guint n,
               double lr,
               double momentum,
               double weight_decay,
               gboolean nesterov,
               double trust)
{
  return MAKE (LARS, IS (LR, lr), IS (MOMENTUM, momentum), IS (WEIGHT_DECAY, weight_decay),
               IS (NESTEROV, nesterov != FALSE), IS (TRUST, trust));
}

TinyOptimizer *
tiny_muon_new (TinyTensor *const *parameters,
               guint n,
               double lr,
               double momentum,
               double weight_decay,
               guint n_steps,
               gboolean nesterov)
{
  return MAKE (MUON, IS (LR, lr), IS (MOMENTUM, momentum), IS (WEIGHT_DECAY, weight_decay),
               IS (STEPS, n_steps), IS (NESTEROV, nesterov != FALSE));
}

TinyOptimizer *
tiny_rmsprop_new (TinyTensor *const *parameters,
                  guint n,
                  double lr,
                  double alpha,
                  double epsilon,
                  double weight_decay,
                  double momentum,
                  gboolean centered)
{
  return MAKE (RMSPROP, IS (LR, lr), IS (ALPHA, alpha), IS (EPSILON, epsilon),
               IS (WEIGHT_DECAY, weight_decay), IS (MOMENTUM, momentum),
               IS (CENTERED, centered != FALSE));
}

TinyOptimizer *
tiny_adagrad_new (TinyTensor *const *parameters,
                  guint n,
                  double lr,
                  double lr_decay,
                  double weight_decay,
                  double initial_accumulator_value,
                  double epsilon)
{
  return MAKE (ADAGRAD, IS (LR, lr), IS (LR_DECAY, lr_decay), IS (WEIGHT_DECAY, weight_decay),
               IS (INITIAL, initial_accumulator_value), IS (EPSILON, epsilon));
}

TinyOptimizer *
tiny_adadelta_new (TinyTensor *const *parameters,
                   guint n,
                   double lr,
                   double rho,
                   double epsilon,
                   double weight_decay)
{
  return MAKE (ADADELTA, IS (LR, lr), IS (RHO, rho), IS (EPSILON, epsilon),
               IS (WEIGHT_DECAY, weight_decay));
}

/* ---- those of two moments ---- */
#define MAKE_OF_MOMENTS(rule, decay)                                                           \
  MAKE (rule, IS (LR, lr), IS (BETA1, beta1), IS (BETA2, beta2), IS (EPSILON, epsilon),        \
        IS (WEIGHT_DECAY, weight_decay), IS (MOMENTUM_DECAY, decay))
#define OF_MOMENTS(rule, name)                                                                 \
  TinyOptimizer *tiny_##name##_new (TinyTensor *const *parameters, guint n, double lr,         \
                                    double beta1, double beta2, double epsilon,                \
                                    double weight_decay)                                       \
  {                                                                                            \
    return MAKE_OF_MOMENTS (rule, 0);                                                          \
  }

OF_MOMENTS (ADAM, adam)
OF_MOMENTS (ADAMW, adamw)
OF_MOMENTS (LAMB, lamb)
OF_MOMENTS (ADAMAX, adamax)
OF_MOMENTS (RADAM, radam)

TinyOptimizer *
tiny_nadam_new (TinyTensor *const *parameters,
                guint n,
                double lr,
                double beta1,
                double beta2,
                double epsilon,
                double weight_decay,
                double momentum_decay)
{
  return MAKE_OF_MOMENTS (NADAM, momentum_decay);
}
