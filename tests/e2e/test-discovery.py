#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What discovery makes of folders, manifests and modules that are not as they should be, and how it says so."""
import json
import os

from e2e import check, main, note, test

BAD = os.environ["TINY_E2E_BAD_DIR"]


def manifest(box, name, module="bad-control.so", folder="plugins", file=None, **more):
    """Writes one for a module of tests/fault, or for a path."""
    return box.write(f"{folder}/{file or name}.json", json.dumps(
        {"format_version": 1, "name": name, "abi": 1, "module": os.path.join(BAD, module),
         "class": "simulator", "probe": {"timeout_ms": 700}, **more}))


def explain(box, **env):
    """Candidates by manifest, places, and the choice."""
    lines = box.run("devices", "--explain", "--json", **{"TINY_PLUGIN_PATH": box.path("plugins"), **env}).good().lines()
    found = {line["manifest"]: line for line in lines if "manifest" in line}
    return found, [line for line in lines if "searched" in line], lines[-1]["choice"]


@test("every candidate, every rung, and why it is chosen or not")
def explained(box):
    rows = {  # manifest → state, the rung that it stops at, a part of what is said there
        manifest(box, "control"): ("ready", None, None),
        manifest(box, "control", file="later"): ("shadowed", "manifest", "control.json"),
        manifest(box, "far", match={"device_nodes": ["/dev/no-such-accelerator"]}): ("no hardware", "hardware", "no-such"),
        manifest(box, "gone", module="gone.so"): ("broken", "file", "gone.so is not there"),
        manifest(box, "future", module="bad-future-note.so"): ("broken", "file", "plugin ABI 2.0"),
        manifest(box, "scan-crash", module="bad-scan-crash.so"): ("quarantined", "scan", "signal 11"),
        manifest(box, "driver", module="bad-driver.so"): ("broken", "scan", "libbad.so.1 is not there"),
        box.write("plugins/mask.json", ""): ("masked", "manifest", "it hides every later one"),
        box.write("plugins/text.json", "{"): ("broken", "manifest", "not JSON"),
    }
    for round_number in (1, 2):
        found, places, choice = explain(box, DEV="control")
        check(choice == "control" and len(found) >= len(rows), choice)
        for path, (state, rung, part) in rows.items():
            candidate = found[path]
            stop = [r for r in candidate["rungs"] if not r["good"]]
            check(candidate["state"] == state and candidate["rule"] == "TINY_PLUGIN_PATH", candidate)
            check([r["rung"] for r in stop] == ([rung] if rung else []), candidate)
            check(rung is None or part in stop[0]["text"], candidate)
            check(candidate["chosen"] == (path.endswith("/control.json")), candidate)
            for r in candidate["rungs"]:
                check(r["recalled"] == (round_number == 2 and r["rung"] in ("scan", "device")), r)
                check(0 <= r["us"] < 5e6, r)
    check([r["rung"] for r in found[box.path("plugins", "control.json")]["rungs"]]
          == ["manifest", "hardware", "file", "scan", "device"], found)
    check("chosen: DEV=control names it" == found[box.path("plugins", "control.json")]["verdict"], found)
    place = next(p for p in places if p["searched"] == box.path("plugins"))
    check(place["found"] == f"{len(rows)} manifests" and place["rule"] == "TINY_PLUGIN_PATH", places)
    check(any(p["found"] == "not there" for p in places), places)
    found, _, choice = explain(box)
    check("simulator is used only where DEV= names it" in found[box.path("plugins", "control.json")]["verdict"], found)
    found, _, choice = explain(box, DEV="NOPE|scan-crash")
    check("“NOPE”" in choice and "in quarantine" in choice, choice)
    text = box.run("devices", "--explain", TINY_PLUGIN_PATH=box.path("plugins"), DEV="control").quiet().out
    for part in ("searched, in this order", "control    chosen: DEV=control names it", "stops here: ", "remembered; it took"):
        check(part in text, text)
    note(text.split("\n\n")[1])


@test("the built backends: what is said to be chosen is what is opened")
def chosen(box):
    for dev in (None, "REF", "NULL|CPU", "REF|CPU"):
        choice = explain(box, TINY_PLUGIN_PATH=os.environ["TINY_PLUGIN_PATH"], DEV=dev)[2]
        said = box.run("bench", "--runs", 1, "--json", "elementwise:100", DEV=dev).good().lines()[0]["device"]
        check(said == choice, f"{dev}: {said} is opened, {choice} said to be chosen")


main()
