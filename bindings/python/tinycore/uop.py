# SPDX-License-Identifier: MIT
"""The graph and the kernels of a tensor, to look at: x.uop is the node that it is, x.schedule () the kernels that would compute it."""
from __future__ import annotations

import re
from typing import NamedTuple

from .errors import call
from .library import Tiny
from .tensor import Base

TOKEN = re.compile(r'\s*(%\d+|"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*|-?[\d.][\w.+-]*|[-+]?(?:inf|nan)|.)', re.S)


class UOp:
    """A node of the tensor graph: op, dtype, src (its sources), arg (its attributes by name, or a constant's value); and text, all that is under it as IR.
    What is written twice in a graph is one node there."""

    op: str
    dtype: str | None
    src: tuple[Any, ...]
    arg: Any

    def __init__(self, op: str, dtype: str | None, src: tuple[Any, ...], arg: Any):
        self.op, self.dtype, self.src, self.arg, self.text = op, dtype, src, arg, ""

    def toposort(self) -> list[UOp]:
        """All nodes under it, each once and after its sources; itself last."""
        found: dict[int, UOp] = {}
        stack = [(self, False)]  # whether its sources are found; no recursion, as graphs are deep
        while stack:
            node, is_ready = stack.pop()
            if is_ready:
                found.setdefault(id(node), node)
            elif id(node) not in found:
                stack.append((node, True))
                stack.extend((one, False) for one in reversed(node.src))
        return list(found.values())

    def __repr__(self):
        arg = "" if self.arg in (None, {}) else f", {self.arg}"
        return f"UOp({self.op}{f'.{self.dtype}' if self.dtype else ''}{arg}, {len(self.src)} sources)"

    def __str__(self):
        return self.text or repr(self)


class Kernel(NamedTuple):
    """A kernel of a schedule: its name and device; text, the IR of it; source, what the device's compiler gets; optimisations, as DEBUG=3 shows them; flops and
    n_bytes, estimates of what one launch calculates and moves. Of a copy between devices texts are None."""

    name: str
    device: str
    text: str | None
    source: str | None
    optimisations: str | None
    flops: int
    n_bytes: int

    def __repr__(self):
        return f"Kernel({self.name} on {self.device}, {self.flops} flops, {self.n_bytes} bytes)"

    def __str__(self):
        return f"{self.name} on {self.device}\n{self.text or 'a copy'}"


class Reader:
    """Nodes of a text."""

    def __init__(self, text):
        self.tokens, self.at, self.known = TOKEN.findall(text), 0, {}

    def take(self, wanted=None):
        """The next token, or whether it is @wanted, which is passed by then."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if wanted is None or token == wanted:
            self.at += 1
        return token if wanted is None else token == wanted

    def value(self):
        """Of an attribute: a list, or a word, a number or a text."""
        if self.take("["):
            out = []
            while not self.take("]"):
                out.append(self.value())
                self.take(",")
            return out
        token = self.take()
        try:
            return int(token)
        except ValueError:
            return token.strip('"')

    def node(self):
        token = self.take()
        if token[0] == "%":
            if self.take("="):
                self.known[token] = self.node()
                return self.known[token]
            return self.known[token]
        if not token[0].isalpha() or token in ("inf", "nan", "true", "false"):
            return UOp("const", None, (), token)
        op, _, dtype = token.partition(".")
        arg, sources = {}, []
        if self.take("{"):
            while not self.take("}"):
                name = self.take()
                self.take("=")
                arg[name] = self.value()
                self.take(",")
        if self.take("("):
            while not self.take(")"):
                sources.append(self.node())
                self.take(",")
        return UOp(op, dtype or None, tuple(sources), arg)


def uop_of(tensor: Tensor) -> UOp:
    text = call(Base.print_graph, tensor)
    reader, found = Reader(text.strip()), None
    while reader.at < len(reader.tokens):
        found = reader.node()
    found.text = text
    return found


def schedule_of(tensor: Tensor, others: Sequence[Tensor]) -> list[Kernel]:
    return [Kernel(one.name, one.device, one.text, one.source, one.optimisations, one.n_flops, one.n_bytes)
            for one in call(Base.schedule, tensor, list(others))]
