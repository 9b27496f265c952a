// SPDX-License-Identifier: MIT
//
// least-squares.js: a line through points, by gradients, in JavaScript: gjs examples/least-squares.js
imports.gi.versions.Tiny = '1.0';
const { Tiny } = imports.gi;

const x = Tiny.Tensor.linspace(Tiny.DType.F32, -1, 1, 32);
const y = x.mul(Tiny.Tensor.scalar(3)).sub(Tiny.Tensor.scalar(2)); // 3 x - 2
const slope = Tiny.Tensor.zeros(Tiny.DType.F32, [1]);
const offset = Tiny.Tensor.zeros(Tiny.DType.F32, [1]);
slope.set_requires_grad(true);
offset.set_requires_grad(true);
const descent = Tiny.sgd_new([slope, offset], 0.3, 0, 0, false);

for (let i = 0; i < 60; i++) {
  const loss = slope.mul(x).add(offset).mse_loss(y, 'mean');
  loss.backward();
  descent.step([]);
  descent.zero_grad();
}
print(`${slope.item()[1].toFixed(2)} x + ${offset.item()[1].toFixed(2)}`);

try {
  x.matmul(Tiny.Tensor.zeros(Tiny.DType.F32, [3, 3])).realize();
} catch (error) {
  print(error.message);
}
