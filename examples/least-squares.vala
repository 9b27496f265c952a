// SPDX-License-Identifier: MIT
//
// least-squares.vala: a line through points, by gradients, in Vala (bindings/vala/README.md has the command).

int main () {
  var x = Tiny.Tensor.linspace (Tiny.DType.F32, -1, 1, 32);
  var y = x.mul (Tiny.Tensor.scalar (3)).sub (Tiny.Tensor.scalar (2)); // 3 x - 2
  var slope = Tiny.Tensor.zeros (Tiny.DType.F32, { 1 });
  var offset = Tiny.Tensor.zeros (Tiny.DType.F32, { 1 });
  slope.set_requires_grad (true);
  offset.set_requires_grad (true);
  var descent = Tiny.sgd_new ({ slope, offset }, 0.3, 0, 0, false);

  try {
    for (int i = 0; i < 60; i++) {
      var loss = slope.mul (x).add (offset).mse_loss (y, "mean");
      loss.backward ();
      descent.step (null);
      descent.zero_grad ();
    }
    double a, b;
    slope.item (out a);
    offset.item (out b);
    print ("%.2f x + %.2f\n", a, b);
    x.matmul (Tiny.Tensor.zeros (Tiny.DType.F32, { 3, 3 })).realize ();
  } catch (Error error) {
    print ("%s\n", error.message);
  }
  return 0;
}
