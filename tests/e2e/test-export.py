# SPDX-License-Identifier: MIT
"""The network for Fashion-MNIST, trained, saved and exported: in a program compiled from C alone and in a
page in headless Chromium it gives the probabilities that it gives here; and what bad input gets."""
import json
import os
import shutil
import struct
import subprocess
import time

import browser
import small_data
from e2e import check, main, near, note, test

HERE = os.path.dirname(os.path.abspath(__file__))
RUN_MODEL = os.environ.get("TINY_E2E_RUN_MODEL", "")
SANITIZED = bool(os.environ.get("TINY_E2E_SANITIZED"))
C_BOUND = PAGE_BOUND = 1e-5  # of a probability
PATIENCE_S = 90
PAGE_MS = 3000
PIXELS, CLASSES = 784, 10

C_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "net/net.h"
int main (int argc, char **argv) {
  static float image[NET_N_IN_IMAGE], result[NET_N_OUT_PROBABILITIES];
  void *weights = malloc (NET_WEIGHTS_BYTES), *scratch = malloc (NET_SCRATCH_BYTES);
  if (argc != 2 || !weights || !scratch || net_load (argv[1], weights) != 0)
    return 3;
  while (fread (image, sizeof image, 1, stdin) == 1) {
    net_run (weights, scratch, image, result);
    fwrite (result, sizeof result, 1, stdout);
  }
  free (weights);
  free (scratch);
  return 0;
}
"""


def floats(raw):
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def read_safetensors(path):
    raw = open(path, "rb").read()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + length]), raw[8 + length:]


trained = {}  # the files of the saved network, which all tests use


def train(box):
    """A saved network, its examples as bytes, and our probabilities for them."""
    data = [] if small_data.is_installed() else ["--data", small_data.write(box, small_data.made(600, 100))]
    model = box.path("net.tir")
    names = ("net.tir", "net.safetensors")
    if not trained:
        box.run("train", "fashion-mnist", "--steps", 20, *data, "--save", model, timeout=600).quiet()
        trained.update({name: open(box.path(name), "rb").read() for name in names})
    for name in names:
        box.write(name, trained[name])
    header, raw = read_safetensors(box.path("net.safetensors"))
    begin, end = header["examples.image"]["data_offsets"]
    examples = raw[begin:end]
    values = box.write("examples", examples)
    n = len(examples) // (4 * PIXELS)
    said = subprocess.run([RUN_MODEL, model, values, str(n), "1", "1", "28", "28"], env=box.environment(),
                          stdout=subprocess.PIPE, timeout=300, check=True)
    return model, examples, floats(said.stdout)


def compare(got, wanted, bound, what):
    check(len(got) == len(wanted), f"{what}: {len(got)} probabilities, not {len(wanted)}")
    worst = max(abs(a - b) for a, b in zip(got, wanted))
    note(f"{what}: the largest difference of {len(got)} probabilities is {worst:.2e}")
    near(worst, 0, bound, what)


@test("c")
def compile_c(box):
    model, examples, ours = train(box)
    box.run("export", model, "--target", "c", "--output", box.path("net")).quiet()
    check(box.files("net") == [box.path("net", f"net.{end}") for end in ("c", "h", "safetensors")], box.files("net"))
    main_file = box.write("main.c", C_MAIN)
    for compiler, *flags in (["gcc", "-O2"], ["clang", "-O2"],
                             ["gcc", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]):
        program = box.path("program")
        built = subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", *flags, "-o", program,
                                main_file, box.path("net", "net.c")], capture_output=True, text=True)
        check(built.returncode == 0 and built.stderr == "", built.stderr[-2000:])
        weights = box.path("net", "net.safetensors")
        with open(box.path("examples"), "rb") as file:
            said = subprocess.run([program, weights], stdin=file, stdout=subprocess.PIPE, check=True)
        compare(floats(said.stdout), ours, C_BOUND, " ".join([compiler, *flags]))
        # Other weights, fewer and none.
        raw = open(weights, "rb").read()
        for bad in (raw[:-4], raw[:-1] + b"x", raw + b"x", b""):
            said = subprocess.run([program, box.write("bad", bad)], stdin=subprocess.DEVNULL)
            check(said.returncode == 3, f"a bad file of {len(bad)} bytes gives {said.returncode}")
        check(subprocess.run([program, box.path("none")], stdin=subprocess.DEVNULL).returncode == 3)


X = "%{0} = param.f32{{slot=0, shape=[4]}}\n%{1} = param.f32{{slot=1, shape=[4]}}\n%y = sub.f32(%{0}, %{1})\nsink(%y)\n"
NAMES = (  # a model, how its two inputs are called in C, how its output
    (X.format("a.b", "a_b"), ("in_a_b", "in_a_b_2"), "out_y"),
    (X.format("A", "a"), ("in_A", "in_a_2"), "out_y"),
    (X.format("a_2", "a"), ("in_a_2", "in_a"), "out_y"),
    (X.format("int", "while"), ("in_int", "in_while"), "out_y"),
    (X.format("weights", "scratch"), ("in_weights", "in_scratch"), "out_y"),
    (X.format("a", "b").replace("%y", "%return"), ("in_a", "in_b"), "out_return"),
    (X.format("a", "b").replace("[4]", "[0]"), ("in_a", "in_b"), "out_y"),
)
NAMED_MAIN = """
#include "{name}/{name}.h"
int main (void) {{
  static float a[{upper}_N_{0} + 4] = {{ 9, 8, 7, 6 }}, b[{upper}_N_{1} + 4] = {{ 1, 2, 3, 4 }}, c[{upper}_N_{2} + 4];
  static char weights[{upper}_WEIGHTS_BYTES], scratch[{upper}_SCRATCH_BYTES];
  {name}_run (weights, scratch, a, b, c);
  for (int i = 0; i < {upper}_N_{2}; i++)
    if (c[i] != a[i] - b[i])
      return 1;
  return {upper}_N_{0} != {upper}_N_{2};
}}
"""


@test("names in C")
def name_c(box):
    for i, (text, inputs, output) in enumerate(NAMES):
        name = ("net", "int", "in", "tiny")[i % 4]  # a keyword, what begins parameters, what begins our own
        out = box.path(str(i), name)
        box.folder(str(i))
        box.run("export", box.write(f"{i}/m.tir", text), "--target", "c", "--output", out).quiet()
        header = open(os.path.join(out, name + ".h")).read()
        check(f"const float *{inputs[0]}, const float *{inputs[1]}, float *{output})" in header, header)
        upper = [port.upper() for port in (*inputs, output)]
        main_file = box.write(f"{i}/main.c", NAMED_MAIN.format(*upper, name=name, upper=name.upper()))
        program = box.path(str(i), "program")
        built = subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o", program, main_file,
                                os.path.join(out, name + ".c")], capture_output=True, text=True)
        check(built.returncode == 0 and built.stderr == "", built.stderr[-2000:])
        check(subprocess.run([program]).returncode == 0, f"{text}: it computes something else")
        check(("which the model calls a_b" in header) == (i == 0), header)


@test("page")
def open_page(box):
    model, examples, ours = train(box)
    box.run("export", model, "--target", "webgpu", "--output", box.path("web"), "--name", "clothes").quiet()
    shutil.copy(os.path.join(HERE, "export-page.html"), box.path("web"))
    page = browser.open_page(box.path("web"), "export-page.html?page")["page"]
    limit = time.monotonic() + PATIENCE_S
    # A machine on which the same browser takes long to compute may take as much longer to load: some 20 runs' time.
    allowed = lambda: max(PAGE_MS, 20 * float(page["status"].split()[2])) if page["status"].startswith("Computed in") else PAGE_MS  # noqa: E731
    while page["ms"] > allowed() and time.monotonic() < limit and not SANITIZED:  # the machine may be busy
        page = browser.open_page(box.path("web"), "export-page.html?page")["page"]
    note(f"the page loads and classifies in {page['ms']:.0f} ms: {page['status']}")
    check(page["status"].startswith("Computed in"), page["status"])
    check(page["ms"] <= allowed(), f"{page['ms']:.0f} ms")
    n = len(examples) // (4 * PIXELS)
    check(page["pictures"] == n, page)
    check([row[0] for row in page["rows"]][:2] == ["T-shirt/top", "Trouser"] and len(page["rows"]) == CLASSES, page)
    for row, value in zip(page["rows"], ours):
        near(float(row[1]), value, 1e-3, row[0])
    answer = browser.open_page(box.path("web"), "export-page.html")
    check("error" not in answer, answer.get("error"))
    compare([value for result in answer["results"] for value in result], ours, PAGE_BOUND, "WebGPU in Chromium")
    compare(answer["both"][0] + answer["both"][1], ours[:2 * CLASSES], PAGE_BOUND, "two runs at once")
    said = answer["troubles"]
    for trouble, part in (("large", "needs maxStorageBufferBindingSize of 1099511627776"), ("foreign", "no model"),
                          ("missing", "clothes.safetensors: 404"), ("cut", "is cut off"), ("shader", "tiny_"),
                          ("absent", "“image” is missing"), ("size", "Float32Array of 3136 bytes"),
                          ("lost", "device was lost"), ("adapter", "no graphics adapter"), ("webgpu", "no WebGPU")):
        check(part in said[trouble], f"{trouble}: {said[trouble]}")


@test("page without WebGPU")
def open_without(box):
    box.run("export", "matvec:64", "--target", "webgpu", "--output", box.path("web")).quiet()
    shutil.copy(os.path.join(HERE, "export-page.html"), box.path("web"))
    page = browser.open_page(box.path("web"), "export-page.html?page", flags=["--disable-features=WebGPU", "--disable-gpu"])["page"]
    check("WebGPU" in page["status"], page["status"])
    note(page["status"])


@test("page of numbers")
def open_numbers(box):
    """What is no picture runs on its examples, on what it is given, and on numbers to begin with."""
    def export(name, *model):
        box.run("export", *model, "--target", "webgpu", "--output", box.path(name)).quiet()
        shutil.copy(os.path.join(HERE, "export-page.html"), box.path(name))
        answer = browser.open_page(box.path(name), "export-page.html?fields")
        check("error" not in answer, answer.get("error"))
        check(answer["page"]["status"].startswith("Computed in") and answer["page"]["pictures"] == 0, answer)
        check(answer["page"]["hasFields"] and answer["typed"]["status"].startswith("Computed in"), answer)
        check("“x” is no number" in answer["bad"]["status"], answer)
        return answer

    page = export("plain", "softmax:8x16")["page"]
    check(page["captions"] == ["result (8, 16): the first 100 of 128"] and len(page["rows"]) == 100, page)
    near(sum(float(row[1]) for row in page["rows"][:16]), 1, 1e-3, "the sum of a row")
    check(float(page["rows"][3][1]) > 10 * float(page["rows"][0][1]) > 0, page)
    typed = export("two", "matmul:2x2x2")["typed"]
    check([float(row[1]) for row in typed["rows"]] == [12, 24, 12, 24], typed)
    data = struct.pack("<10f", *range(1, 11))
    header = {"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
              "examples.x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [16, 40]}}
    text = ("%x = param.f32{slot=0, shape=[3]}\n%a = mul.f32(%x, %x)\n%weights.w = param.f32{slot=1, shape=[4]}\n"
            "%b = mul.f32(%weights.w, expand.f32{shape=[4]}(reduce.f32{op=add, axes=[0]}(%x)))\nsink(%a, %b)\n")
    header = json.dumps(header).encode()
    box.write("m/m.tir", text)
    box.write("m/m.safetensors", struct.pack("<Q", len(header)) + header + data)
    page = export("examples", box.path("m", "m.tir"))["page"]
    check(page["buttons"] == 2 and page["captions"] == ["a (3)", "b (4)"], page)
    check([float(row[1]) for row in page["rows"]] == [25, 36, 49, 18, 36, 54, 72], page)


@test("page as a file")
def open_file(box):
    box.run("export", "matvec:64", "--target", "webgpu", "--output", box.path("web")).quiet()
    said = browser.open_file(box.path("web", "index.html"))
    check("Serve its folder by HTTP" in said and "Loading …</p>" not in said and 'class="failed"' in said, said)
    # So it is where a module is missing, or is not what this browser can read.
    shutil.copy(os.path.join(HERE, "export-page.html"), box.path("web"))
    for name, text in (("runner.js", "export class Model { # no }"), ("page.js", None)):
        if text is None:
            os.unlink(box.path("web", name))
        else:
            box.write(f"web/{name}", text)
        page = browser.open_page(box.path("web"), "export-page.html?page")["page"]
        check("cannot run the modules of this page" in page["status"], f"{name}: {page}")


@test("other targets")
def export_others(box):
    box.run("export", "softmax:8x16", "--target", "CPU:CLANG", "--output", box.path("files"), "--name", "soft max").quiet()
    model = json.load(open(box.path("files", "model.json")))
    check(model["name"] == "soft_max" and model["renderer"] == "CLANG", model)
    check([i["shape"] for i in model["inputs"]] == [[8, 16]] and model["outputs"][0]["shape"] == [8, 16], model)
    for kernel in model["kernels"]:
        check(open(box.path("files", kernel["file"]), "rb").read(4) == b"\x7fELF", kernel)


@test("forms that a manifest may want")
def refuse_forms(box):
    """What a renderer does not write as the form wants it is refused; --help lists what the manifests have."""
    folder = os.environ["TINY_PLUGIN_PATH"]
    model = box.write("m.tir", "%x = param.f32{slot=0, shape=[4]}\nsink(mul.f32(%x, %x))\n")
    for backend, renderer, form, part in (("webgpu", "WGSL", "c", "renderer WGSL does not write kernel"),
                                          ("cpu", "CLANG", "c", "renderer CLANG does not write kernel"),
                                          ("cpu", "LLVM", "c", "renderer LLVM makes code for one machine"),
                                          ("cpu", "C", "elf", "wants the form “elf”")):
        path = next(path for path in (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
                    if json.load(open(path))["name"] == backend.upper())
        manifest = json.load(open(path))
        manifest["module"] = os.path.normpath(os.path.join(folder, manifest["module"]))
        manifest["exports"] = {"odd": {"renderer": renderer, "form": form}}
        box.write("plugins/odd.json", json.dumps(manifest))
        plugins = {"TINY_PLUGIN_PATH": box.path("plugins")}
        box.run("export", model, "--target", "odd", "--output", box.path("out"), **plugins).refused(part)
        check(not os.path.exists(box.path("out")))
        said = box.run("export", "--help", **plugins).quiet().out
        check("what for: odd, or BACKEND" in said and "webgpu" not in said, said)
    check("what for: c, webgpu, or" in box.run("export", "--help").quiet().out)


GOOD = "%x = param.f32{slot=0, shape=[4]}\n%weights.w = param.f32{slot=1, shape=[4]}\n%y = mul.f32(%x, %weights.w)\nsink(%y)\n"


def pack(name="w", dtype="F32", shape=(4,), end=16, data=bytes(16)):
    header = json.dumps({name: {"dtype": dtype, "shape": list(shape), "data_offsets": [0, end]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


@test("bad input")
def refuse(box):
    def refused(text, weights, *parts, target="c", output=None):
        files = {box.write("m/bad.tir", text)}
        if os.path.exists(box.path("m", "bad.safetensors")):
            os.unlink(box.path("m", "bad.safetensors"))
        if weights is not None:
            files.add(box.write("m/bad.safetensors", weights))
        result = box.run("export", box.path("m", "bad.tir"), "--target", target, "--output",
                         output or box.path("m", "out"))
        result.refused(*parts)
        check(set(box.files("m")) == files, box.files("m"))

    box.write("m/good.tir", GOOD)
    box.write("m/good.safetensors", pack())
    box.run("export", box.path("m", "good.tir"), "--target", "c", "--output", box.path("good")).quiet()
    for name in ("good.tir", "good.safetensors"):
        os.unlink(box.path("m", name))
    refused(GOOD, None, "bad.tir", "weight “w”", "bad.safetensors")
    refused(GOOD, pack(name="v"), "bad.safetensors: weight “w” is missing")
    refused(GOOD, pack(dtype="I32"), "weight “w” is not the f32 of (4,)")
    refused(GOOD, pack(shape=(2, 2)), "weight “w” is not the f32 of (4,)")
    refused(GOOD, pack(end=20), "“w”: its data is said to be from 0 to 20 of 16 bytes")
    refused(GOOD, pack(shape=(3,)), "“w”: its shape and its 16 bytes of data disagree")
    refused(GOOD, pack(shape=(2**62, 2**62)), "disagree")
    refused(GOOD, pack(dtype="X7"), "“w”: unknown dtype “X7”")
    refused(GOOD, pack()[:30], "bad.safetensors: it is no safetensors file, or cut off")
    refused(GOOD, b"\xff" * 8 + b"{}", "cut off")
    refused(GOOD, b"\x02" + bytes(7) + b"[]", "bad.safetensors")
    refused("nonsense", None, "bad.tir: 1:1: unknown op")
    refused("%x = param.f32{slot=0, shape=[4]}\nsink(assign.f32(%x, %x))\n", None, "assign has no place in a model")
    refused("%x = param.f32{slot=0, shape=[4]}\n%y = param.f32{slot=0, shape=[5]}\n%a = neg.f32(%x)\n%b = neg.f32(%y)\nsink(%a, %b)\n",
            None, "another param has its number")
    double = "%x = param.f64{slot=0, shape=[4]}\n%y = mul.f64(%x, %x)\nsink(%y)\n"
    refused(double, None, "export for “webgpu”: kernel ", "f64", target="webgpu")
    plain = double.replace("f64", "f32")
    refused(plain, None, "there is no target “toaster”; there is: ", target="toaster")
    refused(plain, None, "no renderer “NOPE”", target="CPU:NOPE")
    refused(plain, None, "No such file", output=box.path("none", "out"))
    refused(plain, None, "Not a directory", output=box.write("file", "x") + "/out")
    refused(plain, None, "something in it", output=box.folder("full") if box.write("full/x", "x") else "")
    refused(plain, None, "file: Not a directory", output=box.path("file"))
    check(sorted(os.listdir(box.path("full"))) == ["x"] and open(box.path("file")).read() == "x")
    box.run("export", box.path("none.tir"), "--target", "c", "--output", box.path("o")).refused("none.tir", "No such file")
    box.run("export", box.folder("dir.tir"), "--target", "c", "--output", box.path("o")).refused("wanted a file")
    box.run("export", "nothing:5", "--target", "c", "--output", box.path("o")).refused("nothing")
    box.run("export").refused("usage:", "targets: ", status=2)
    box.run("train", "fashion-mnist", "--steps", "1", "--save", "x.bin").refused(".tir", status=2)
    box.run("train", "fashion-mnist", "--steps", "1", "--save", "/nowhere/x.tir").refused("folder", status=2)


main()
