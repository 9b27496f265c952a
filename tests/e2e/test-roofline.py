# SPDX-License-Identifier: MIT
"""tinycore bench --roofline: roofs that can be, kernels under them, a picture that is XML; DEBUG=2 shows shares."""
import json
import os
import re
import time
import xml.etree.ElementTree as tree

from e2e import check, main, near, note, test

CASES = ("matmul:128", "sum:512x512", "softmax:64x300", "launch:4", "elementwise:1000000")


def measure(box, *more):
    path = box.path("roofline.svg")
    result = box.run("bench", "--json", "--runs", 3, "--roofline", "--svg", path, *more, *CASES, DEV="CPU").quiet()
    roofs, *points = result.lines()
    return roofs, points, path


@test("roofs are sane, every kernel has its numbers")
def roofs(box):
    roof, points, _ = measure(box)
    check(roof["device"] == "CPU" and roof["threads"] >= 1, roof)
    check(0.1 < roof["gflops"]["f64"] < 1e6 and roof["gflops"]["f32"] > 0.8 * roof["gflops"]["f64"], roof)
    levels = [level["level"] for level in roof["memory"]]
    check(levels[-1] == "memory" and levels == sorted(levels), levels)
    for level in roof["memory"]:
        check(0.1 < level["read"] < 1e5, level)
    check({point["case"] for point in points} == set(CASES), points)
    for p in points:
        check(p["us"] > 0 and p["launches"] >= 1 and p["share"] >= 0, p)
        near(p["gflops"], p["intensity"] * p["gbps"], 0.01 * p["gflops"] + 1e-6, p["kernel"])
        check(p["bound"] in levels or p["bound"] in roof["gflops"], p)
        if p["bound"] in roof["gflops"] and p["bound"] != "arithmetic":
            near(p["share"], p["gflops"] / roof["gflops"][p["bound"]], 0.01 * p["share"] + 1e-6, p["kernel"])
    named = {p["case"]: p for p in points}
    near(named["matmul:128"]["gflops"] * named["matmul:128"]["us"] * 1e3, 2 * 128**3, 100, "operations of a matmul")
    check(named["launch:4"]["launches"] == 4, named["launch:4"])
    note(f"{roof['gflops']} {roof['memory']}")


@test("what was measured is kept, and measured anew when asked")
def kept(box):
    first, _, _ = measure(box)
    start = time.monotonic()
    again, _, _ = measure(box)
    check(first == again, f"{first} {again}")
    note(f"{time.monotonic() - start:.2f} s with roofs that are kept")
    anew, _, _ = measure(box, "--measure")
    check(anew["gflops"] != first["gflops"], "measured again to the last digit")


@test("the picture is XML with every kernel in it")
def picture(box):
    _, points, path = measure(box)
    root = tree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    check(root.tag == space + "svg", root.tag)
    width, height = float(root.get("width")), float(root.get("height"))
    drawn = [p for p in points if p["gflops"] > 0]
    circles = root.findall(space + "circle")
    check(len(circles) == len(drawn) > 0, f"{len(circles)} points for {len(drawn)} kernels")
    for circle in circles:
        check(0 < float(circle.get("cx")) < width and 0 < float(circle.get("cy")) < height, tree.tostring(circle))
    texts = "".join(text.text or "" for text in root.iter(space + "text"))
    for p in points:
        check(p["case"] in texts and p["kernel"][:40] in texts, p)
    check("GFLOP/s" in texts and "memory" in texts, texts)


@test("DEBUG=2 shows the share once the roof is known")
def shares(box):
    line = r"CPU +\S+ +[\d.]+ us +[\d.]+ GFLOP/s +[\d.]+ GB/s"
    before = box.run("bench", "--runs", 1, "matmul:32", DEV="CPU", DEBUG=2).good().err
    check(re.search(line + "$", before, re.M) and "% of" not in before, before[-500:])
    box.run("bench", "--roofline", DEV="CPU").quiet()
    after = box.run("bench", "--runs", 1, "matmul:32", DEV="CPU", DEBUG=2).good().err
    check(re.search(line + r" +[\d.]+ % of (arithmetic|L\d|memory)$", after, re.M), after[-500:])


@test("wrong lines and devices without roofs are refused")
def refused(box):
    box.run("bench", "--svg", "a.svg", "matmul:8", DEV="CPU").refused("usage:", status=2)
    box.run("bench", "--measure", "matmul:8", DEV="CPU").refused("usage:", status=2)
    box.run("bench", "--roofline", "nosuch:8", DEV="CPU").refused("nosuch", status=2)
    box.run("bench", "--roofline", "--svg", box.path("no", "a.svg"), "matmul:8", DEV="CPU").refused("a.svg")
    box.run("bench", "--roofline", "matmul:8", DEV="NULL:CPU").refused("runs nothing")
    check(not os.path.exists(box.path("no")), "a folder was made")


main()
