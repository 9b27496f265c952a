# SPDX-License-Identifier: MIT
"""What a type checker has to refuse: every line that says so, and no other. test_types.py lets mypy check it; it is not run."""
import tinycore
import tinycore.nn.functional as F
from tinycore import Device, Tensor, TinyJit, Variable, dtypes, fft, func, linalg, nn, optim, special
from tinycore.nn.state import safe_save
from tinycore.utils.data import DataLoader

x = Tensor.ones(2, 3)
x + "1"  # error: Unsupported operand types
x @ None  # error: Unsupported operand types
x["a"]  # error: Invalid index type
x[0] = "a"  # error: Incompatible types in assignment
x.reshape("2")  # error: incompatible type "str"
x.sum(axis="rows")  # error: incompatible type "str"
x.cast(3)  # error: incompatible type "int"
x.softmax(axis=1.5)  # error: incompatible type "float"
x.relu(1)  # error: Too many arguments
x.no_such_method()  # error: has no attribute
x.shape = (2, 3)  # error: read-only
x.dropout(p="half")  # error: incompatible type "str"
x.conv2d()  # error: Missing positional argument
x.to(3)  # error: incompatible type "int"
x.backward("1", None, False, None, 2)  # error: Too many arguments
x.pad(2)  # error: incompatible type "int"
x.add(1, alpha="2")  # error: incompatible type "str"
x.quantile(0.5, interpolation=1)  # error: incompatible type "int"
Tensor.zeros(2, 3, dtype=3)  # error: incompatible type "int"
Tensor.zeros("2")  # error: incompatible type "str"
Tensor.full((2, 2), "1")  # error: incompatible type "str"
Tensor.cat([1, 2])  # error: incompatible type "int"
s: str = x.sum()  # error: Incompatible types in assignment
tinycore.zeros(2, dtype=None, devise="CPU")  # error: Unexpected keyword argument
tinycore.no_such_function(x)  # error: has no attribute
tinycore.hann_window("4")  # error: incompatible type "str"
dtypes.float33  # error: has no attribute
Device[0]  # error: Invalid index type
Variable("n", 1, "3")  # error: incompatible type "str"
linalg.norm(x, dim="0")  # error: incompatible type "str"
linalg.eigh(x).values  # error: has no attribute
fft.fft(x, n="8")  # error: incompatible type "str"
special.entr(1.0)  # error: incompatible type "float"
func.vmap(3)  # error: incompatible type "int"
F.relu("x")  # error: incompatible type "str"
F.cross_entropy(x, x, reduction=1)  # error: incompatible type "int"
F.gumbel_softmax(x, tau="1")  # error: incompatible type "str"
nn.Linear(2, "3")  # error: incompatible type "str"
nn.Linear(2)  # error: Missing positional argument
nn.Linear(2, 3)(1)  # error: incompatible type "int"
nn.Conv2d(1, 2, "3")  # error: incompatible type "str"
nn.Softmax(dim="1")  # error: incompatible type "str"
nn.LSTM(2, 3)(x).sum()  # error: has no attribute
nn.CrossEntropyLoss(reduction=True)  # error: incompatible type "bool"
nn.MultiheadAttention(8, 2, dropout="0")  # error: incompatible type "str"
nn.NoSuchLayer(3)  # error: has no attribute
optim.SGD([x], lr="0.1")  # error: incompatible type "str"
optim.SGD(3)  # error: incompatible type "int"
optim.lr_scheduler.StepLR(x, 2)  # error: incompatible type "Tensor"
DataLoader([x], batch_size="4")  # error: incompatible type "str"
safe_save([x], "file")  # error: incompatible type "List[Tensor]"


@TinyJit
def double(a: Tensor) -> Tensor:
    return a * 2


double("x")  # error: incompatible type "str"
t: int = double(x)  # error: Incompatible types in assignment
