#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds of GPT-2's prefill and decoding in llama.cpp: a JSON line. Threads as in OMP_NUM_THREADS.

The weights are written as a GGUF file into a temporary folder. The library inside of the package xllamacpp exports the C
API; its parameters are passed on as they come, so their layout does not matter here. The cache is llama.cpp's default, f16."""
import ctypes
import glob
import os
import tempfile
import gguf
import numpy as np
import xllamacpp
from common import arguments, fill, report

VOCABULARY, WIDTH, HEADS, LAYERS, POSITIONS, PROMPT = 50257, 768, 12, 12, 1024, 128
NEXT_TOKEN, TOKEN_STRIDE = 11, 37
FORMS = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16,
         "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}
NAMES = ("gpt2-prefill", "gpt2-decode", *(f"gpt2-decode:{form}" for form in FORMS if form != "f32"))


def write_model(path, form):
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(POSITIONS)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(4 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(1e-5)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(VOCABULARY)

    def add(name, ours, *shape, offset=0.0, form="f32"):
        data = fill(ours, shape, offset, 0.07)
        writer.add_tensor(name, gguf.quants.quantize(data, FORMS[form]), raw_dtype=FORMS[form])

    def norm(name, ours):
        add(f"{name}.weight", f"{ours}.weight", WIDTH, offset=1)
        add(f"{name}.bias", f"{ours}.bias", WIDTH)
    add("token_embd.weight", "tokens", VOCABULARY, WIDTH, form=form)
    add("position_embd.weight", "positions", POSITIONS, WIDTH)
    norm("output_norm", "norm")
    for i in range(LAYERS):
        norm(f"blk.{i}.attn_norm", f"h.{i}.norm1")
        norm(f"blk.{i}.ffn_norm", f"h.{i}.norm2")
        for name, ours, n_in, n_out in (("attn_qkv", "attention", WIDTH, 3 * WIDTH), ("attn_output", "project", WIDTH, WIDTH),
                                        ("ffn_up", "up", WIDTH, 4 * WIDTH), ("ffn_down", "down", 4 * WIDTH, WIDTH)):
            add(f"blk.{i}.{name}.weight", f"h.{i}.{ours}.weight", n_out, n_in, form=form)
            add(f"blk.{i}.{name}.bias", f"h.{i}.{ours}.bias", n_out)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Opaque(ctypes.Structure):
    """Parameters or a batch, by value: larger than any of them."""
    _fields_ = [("bytes", ctypes.c_char * 1024)]


class Llama:
    def __init__(self, path):
        self.library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), "*.so"))[0])
        pointer, number = ctypes.c_void_p, ctypes.c_int32
        self.silence = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, pointer)(lambda *ignored: None)
        self.bind("llama_log_set", None, pointer, pointer)(ctypes.cast(self.silence, pointer), None)
        model = self.bind("llama_model_load_from_file", pointer, ctypes.c_char_p, Opaque)(
            path.encode(), self.bind("llama_model_default_params", Opaque)())
        self.context = self.bind("llama_init_from_model", pointer, pointer, Opaque)(
            model, self.bind("llama_context_default_params", Opaque)())
        threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))
        self.bind("llama_set_n_threads", None, pointer, number, number)(self.context, threads, threads)
        self.memory = self.bind("llama_get_memory", pointer, pointer)(self.context)
        self.batch = self.bind("llama_batch_get_one", Opaque, pointer, number)
        self.run = self.bind("llama_decode", number, pointer, Opaque)
        self.forget = self.bind("llama_memory_seq_rm", ctypes.c_bool, pointer, number, number, number)
        self.scores = self.bind("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), pointer, number)

    def bind(self, name, result, *arguments):
        function = getattr(self.library, name)
        function.restype, function.argtypes = result, arguments
        return function

    def forward(self, tokens, past):
        """Scores after @tokens, behind the first @past that are in the cache."""
        if not self.forget(self.memory, 0, past, -1) or self.run(self.context, self.batch(tokens, len(tokens))) != 0:
            raise SystemExit("llama_decode failed")
        return np.ctypeslib.as_array(self.scores(self.context, -1), (VOCABULARY,))


def main():
    args = arguments(__doc__, NAMES)
    case, _, form = args.case.partition(":")
    with tempfile.TemporaryDirectory(prefix="tinycore-llama-") as folder:
        path = os.path.join(folder, "gpt2.gguf")
        write_model(path, form or "f32")
        llama = Llama(path)
    prompt = (ctypes.c_int32 * PROMPT)(*(i * TOKEN_STRIDE % VOCABULARY for i in range(PROMPT)))
    if case == "gpt2-prefill":
        report(args, lambda: llama.forward(prompt, 0))
        return
    llama.forward(prompt, 0)
    token = (ctypes.c_int32 * 1)(NEXT_TOKEN)
    report(args, lambda: llama.forward(token, PROMPT))


main()
