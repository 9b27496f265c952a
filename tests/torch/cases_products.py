# SPDX-License-Identifier: MIT
"""Sums of products, by letters and by name."""
import tinycore.nn.functional as ours
import torch

from harness import case, each, refuses

EQUATIONS = [
    ("i->i", (4,)), ("ij->ji", (3, 4)), ("ij->i", (3, 4)), ("ij->", (3, 4)), ("ij", (3, 4)), ("ji", (3, 4)), ("ii->i", (4, 4)), ("ii", (4, 4)),
    ("iij->j", (3, 3, 4)), ("ijij->ij", (2, 3, 2, 3)), ("iii->i", (3, 3, 3)), ("...i->...", (2, 3, 4)), ("...ij->...ji", (2, 3, 4)),
    ("i...->...", (2, 3, 4)), ("i,i->", (4,), (4,)), ("i,j->ij", (3,), (4,)), ("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)),
    ("ij,kj->ik", (3, 4), (5, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (3, 4, 5)), ("ij,ij->ij", (3, 4), (3, 4)), ("ij,j->i", (3, 4), (4,)), ("i,ij->j", (3,), (3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("i,j,k->ijk", (2,), (3,), (4,)), ("ia,ib,ic->abc", (5, 2), (5, 3), (5, 4)), ("ij,k->", (2, 3), (4,)), ("aB,Bc", (2, 3), (3, 4)),
    ("ab...,bc...->ac...", (2, 3, 4), (3, 5, 4)), ("... , ... -> ...", (2, 3), (3,)), ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("ijj,jk->ik", (2, 3, 3), (3, 4)), ("zxy,xy->z", (2, 3, 4), (3, 4)), ("ij,ij->", (3, 4), (3, 4)), ("ab,ac,ad->bcd", (4, 2), (4, 3), (4, 2)),
    ("i...,i...->...", (4, 3, 2), (4, 3, 2)), ("bn,anm,bm->ba", (2, 5), (3, 5, 4), (2, 4)),
]
for equation, *shapes in EQUATIONS:
    case("einsum", list(shapes), lambda *x, e=equation: type(x[0]).einsum(e, *x), lambda *x, e=equation: torch.einsum(e, *x), label=f"{equation} {shapes}")
for equation, *shapes in (("ij,jk->il", (2, 3), (3, 4)), ("ij->ii", (2, 3)), ("ij", (2, 3, 4)), ("ij,jk->ik", (2, 3)), ("ij->ji", (2, 3), (2, 3)), ("i$->i", (2, 3)),
                          ("ij,jk->ik", (2, 3), (4, 5)), ("ii->i", (2, 3)), ("ij->ij->", (2, 3)), ("ij-", (2, 3))):
    refuses("einsum", list(shapes), lambda *x, e=equation: type(x[0]).einsum(e, *x), lambda *x, e=equation: torch.einsum(e, *x), label=equation)
each("mm", [[(3, 4), (4, 5)], [(1, 7), (7, 1)], [(6, 2), (2, 3)]], lambda x, y: x.mm(y))
case("mm", [(0, 3), (3, 2)], lambda x, y: x.mm(y), gradient=False)
each("mv", [[(3, 4), (4,)], [(1, 1), (1,)]], lambda x, y: x.mv(y))
each("bmm", [[(2, 3, 4), (2, 4, 5)], [(1, 2, 2), (1, 2, 2)]], lambda x, y: x.bmm(y))
each("outer", [[(3,), (4,)], [(1,), (5,)]], lambda x, y: x.outer(y))
each("inner", [[(3, 4), (5, 4)], [(4,), (4,)], [(2, 3, 4), (4,)], [(), (3,)]], lambda x, y: x.inner(y))
each("matmul", [[(3, 4), (4, 5)], [(4,), (4,)], [(4,), (4, 3)], [(2, 3, 4), (4,)], [(2, 1, 3, 4), (5, 4, 2)], [(33, 17), (17, 65)]], lambda x, y: x @ y, low=-1.0, high=1.0)
each("dot", [[(4,), (4,)]], lambda x, y: x.dot(y))
each("linear", [[(2, 3), (4, 3), (4,)], [(5, 2, 3), (4, 3), (4,)]], ours.linear, torch.nn.functional.linear)
each("tensordot", [[(3, 4, 5), (4, 5, 2)], [(2, 3), (2, 3)]], lambda x, y: x.tensordot(y), lambda x, y: torch.tensordot(x, y, 2))
for dims in (0, 1):
    case("tensordot", [(3, 4), (4, 5)], lambda x, y, d=dims: x.tensordot(y, d), lambda x, y, d=dims: torch.tensordot(x, y, d))
case("tensordot", [(3, 4, 5), (4, 3, 2)], lambda x, y: x.tensordot(y, self_dims=(0, 1), other_dims=(1, 0)),
     lambda x, y: torch.tensordot(x, y, ([0, 1], [1, 0])))
each("kron", [[(2, 3), (4, 2)], [(2,), (3, 2)], [(), (2, 2)], [(2, 1, 3), (1, 2)]], lambda x, y: x.kron(y), torch.kron)
each("trace", [[(4, 4)], [(3, 5)]], lambda x: x.trace())
case("trace", [(5, 2)], lambda x: x.trace(), gradient=False)  # PyTorch 1.13's gradient is beyond the diagonal
case("cross", [(4, 3), (4, 3)], lambda x, y: x.cross(y), lambda x, y: torch.cross(x, y, -1))
case("cross", [(3, 5), (3, 5)], lambda x, y: x.cross(y, 0), lambda x, y: torch.cross(x, y, 0))
for beta, alpha in ((1, 1), (0.5, 2), (0, 1)):
    case("addmm", [(3, 5), (3, 4), (4, 5)], lambda x, y, z, b=beta, a=alpha: x.addmm(y, z, beta=b, alpha=a))
    case("addmm", [(5,), (3, 4), (4, 5)], lambda x, y, z, b=beta, a=alpha: x.addmm(y, z, beta=b, alpha=a))
    # With a beta of 0 PyTorch 1.13 adds what its memory held before, which may be NaN.
    case("baddbmm", [(2, 3, 5), (2, 3, 4), (2, 4, 5)], lambda x, y, z, b=beta, a=alpha: x.baddbmm(y, z, beta=b, alpha=a),
         lambda x, y, z, b=beta, a=alpha: b * x + a * y.bmm(z))
refuses("mm", [(3, 4), (3, 4)], lambda x, y: x.mm(y))
refuses("bmm", [(2, 3, 4), (3, 4, 5)], lambda x, y: x.bmm(y))
refuses("outer", [(2, 3), (3,)], lambda x, y: x.outer(y))
refuses("trace", [(2, 3, 3)], lambda x: x.trace())
refuses("cross", [(4,), (4,)], lambda x, y: x.cross(y), lambda x, y: torch.cross(x, y, -1))
refuses("tensordot", [(3, 4), (5, 4)], lambda x, y: x.tensordot(y, 1), lambda x, y: torch.tensordot(x, y, 1))
