#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a run of the suite leaves: certificates that hold and such that do not, known failures with their
rules, JUnit and HTML that parse, and the finished cases of a run that was interrupted."""
import datetime
import html.parser
import json
import os
import re
import signal
import time
import xml.etree.ElementTree

from e2e import check, main, test
from suite import BELOW, CRASHED, FAILED, INSTRUMENTED, OWN, PASSED, PATIENT, USAGE, bad, case, certificate, conformance, every_group_passed

ONE = "memory/size/4096"
PART = ("--filter", "memory/*", "--filter", "load/*")
whole = {}


class Balanced(html.parser.HTMLParser):
    """Fails on tags that are not closed, and keeps what the page asks others for."""

    def __init__(self):
        super().__init__()
        self.open, self.outside = [], []

    def handle_starttag(self, tag, attrs):
        self.outside += [value for name, value in attrs if name in ("src", "href")]
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}")


def day(offset):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=offset)).strftime("%Y-%m-%d")


def of_ref(box):
    """The certificate of a whole run of level core on REF, made once."""
    if not whole:
        whole.update(certificate(box, "REF", *PATIENT, status=OWN)[0])
    return whole


def expectations(box, *entries):
    return box.write("expect.json", json.dumps({"format_version": 1, "expectations": entries}))


def entry(pattern, expires=30, **changes):
    return {"case": pattern, "reason": "the fake copies nothing", "link": "https://bugs.example.org/1", "expires": day(expires),
            **changes}


@test("core level on REF passes, in every group")
def core(box):
    every_group_passed(of_ref(box))
    check(len(of_ref(box)["subject"]["sha256"]) == 64 and of_ref(box)["subject"]["name"] == "REF")


@test("a certificate has the schema that the README says")
def schema(box):
    found = of_ref(box)
    check(found["format"] == "tinycore-conformance 1" and found["status"] == OWN)
    for part, names in {
            "subject": ["spec", "file", "sha256", "build_id", "bytes", "name", "vendor", "version", "device", "id", "title",
                        "arch", "renderer", "driver", "ops", "dtypes_storage", "dtypes_compute"],
            "suite": ["version", "build_id", "abi_major", "abi_minor"],
            "run": ["level", "seed", "filters", "date", "seconds", "host", "complete", "kept"],
            "score": ["must", "passed", "failed", "crashed", "hung", "expected", "not run", "recorded", "absent"]}.items():
        missing = [name for name in names if name not in found[part]]
        check(not missing, f"{part} lacks {missing}")
    for it in found["cases"]:
        check(it["outcome"] in ("passed", "recorded") or it["name"] in INSTRUMENTED, it)
        check(it["level"] in ("core", "full", "models", "stress"), it)
        check(isinstance(it["must"], bool), it)
    rows = {row["op"]: row["dtypes"] for row in found["capabilities"]}
    check(rows["add"]["f32"] == "native" and "f32" not in rows["shl"] and len(rows) == 28, rows)
    check(len(found["subject"]["build_id"]) >= 16, found["subject"])


@test("what is not native is emulated, or unsupported")
def capabilities(box):
    found, _ = certificate(box, "REF::words", "--filter", "load/*", status=PASSED)
    rows = {row["op"]: row["dtypes"] for row in found["capabilities"]}
    check(rows["add"]["i64"] == "emulated" and rows["add"]["f64"] == "unsupported" and rows["add"]["i32"] == "native", rows)


@test("JUnit and HTML parse and name every failure")
def pages(box):
    junit, page = box.path("junit.xml"), box.path("page.html")
    found, _ = certificate(box, bad("control"), *PART, "--junit", junit, "--html", page, status=FAILED)
    root = xml.etree.ElementTree.parse(junit).getroot()
    named = [c for c in root.iter("testcase") if c.find("failure") is not None]
    check(len(named) == found["score"]["failed"] > 5, (len(named), found["score"]))
    for suite in root.iter("testsuite"):
        check(int(suite.get("tests")) == len(suite.findall("testcase")), suite.attrib)
        check(int(suite.get("failures")) == len(suite.findall("testcase/failure")), suite.attrib)
    parser = Balanced()
    with open(page, encoding="utf-8") as file:
        text = file.read()
    parser.feed(text)
    check(not parser.open and not parser.outside, (parser.open, parser.outside))
    check(ONE in text and found["subject"]["build_id"] in text)
    certificate(box, bad("submit-crash"), "--filter", ONE, "--junit", junit, status=CRASHED)
    errors = list(xml.etree.ElementTree.parse(junit).getroot().iter("error"))
    check(len(errors) == 1 and "bad-submit-crash.so" in errors[0].text, errors)


@test("a known failure needs a reason, a link and a day")
def rules(box):
    for wrong in [entry(ONE, reason=" "), entry(ONE, link="17"), entry(ONE, expires_=1), entry("", 30),
                  entry(ONE, 500), {**entry(ONE), "expires": "2026-02-30"}, {**entry(ONE), "expires": "soon"}, [], 7]:
        path = expectations(box, wrong)
        conformance(box, bad("control"), "--expect", path, status=USAGE).refused("expect.json", "expectation 0", status=USAGE)
    for text in ["", "{", "[]", '{"format_version": 2, "expectations": []}', '{"format_version": 1}']:
        conformance(box, "REF", "--expect", box.write("e.json", text), status=USAGE).refused("e.json", status=USAGE)


@test("a known failure holds, is stale, or has expired")
def known(box):
    run = ("--level", "full", "--filter", "memory/size/7", "--filter", "memory/zero")
    held = expectations(box, entry("memory/size/7"))
    found, _ = certificate(box, bad("control"), *run, "--expect", held, status=PASSED)
    check(case(found, "memory/size/7")["expectation"]["state"] == "holds" and found["score"]["expected"] == 1)
    check(found["score"]["passed"] == 1 and found["score"]["must"] == 2, found["score"])
    stale = expectations(box, entry("memory/size/7"), entry("memory/zero"))
    found, result = certificate(box, bad("control"), *run, "--expect", stale, status=FAILED)
    check(case(found, "memory/zero")["expectation"]["state"] == "stale" and "it passes" in result.out, result)
    expired = expectations(box, entry("memory/size/7", -1))
    found, result = certificate(box, bad("control"), *run, "--expect", expired, status=FAILED)
    check(case(found, "memory/size/7")["expectation"]["state"] == "expired" and "until" in result.out, result)
    unknown = expectations(box, entry("memory/size/7"), entry("memory/nosuch"))
    found, _ = certificate(box, bad("control"), *run, "--expect", unknown, status=FAILED)
    check("there is no such case" in case(found, "expectations/1")["messages"][0])


@test("nothing of level core, and no crash, is excused")
def excuses(box):
    path = expectations(box, entry("memory/size/*"))
    found, _ = certificate(box, bad("control"), "--filter", ONE, "--filter", "memory/zero", "--expect", path, status=BELOW)
    check(found["score"]["expected"] == 1 and found["certified"] == "none")
    found, _ = certificate(box, bad("submit-crash"), "--level", "full", "--filter", "memory/size/7", "--expect", path,
                           status=CRASHED)
    check(case(found, "memory/size/7")["outcome"] == "crashed")


@test("a certificate holds, and says what it is worth")
def verify(box):
    path = box.path("certificate.json")
    part, _ = certificate(box, "REF", *PART, status=PASSED)
    out = conformance(box, "--verify", path, "--part", "1", "REF", status=PASSED).out
    check("taken at its word" in out and part["run"]["date"] in out and part["run"]["host"] in out, out)
    moved = json.loads(json.dumps(part))
    moved["subject"].update(file="other.so", driver="9\x1b[2J")
    out = conformance(box, "--verify", box.write("moved.json", json.dumps(moved)), status=PASSED).out
    check("note: its file is “other.so”, and here it is “tiny-ref.so”" in out and "note: its driver is “9?[2J”" in out, out)
    check("\x1b" not in out, out)
    check("holds" in out and "it is of a filtered run and certifies nothing" in out, out)
    out = conformance(box, "--verify", box.write("whole.json", json.dumps(of_ref(box))), *PATIENT, status=PASSED).out
    worth = "it is of a run that did not pass and certifies nothing" if INSTRUMENTED else "it certifies level core"
    check("holds" in out and worth in out, out)
    conformance(box, "CPU", "--verify", path, status=FAILED)
    for text in ["", "{}", '{"format": "tinycore-conformance 1"}', "[1]", json.dumps({**part, "cases": [1]}),
                 json.dumps({**part, "run": {**part["run"], "level": "all"}}), json.dumps({**part, "status": "0"})]:
        conformance(box, "--verify", box.write("none.json", text), status=USAGE).refused("none.json", status=USAGE)


def rescored(found):
    """It, with the score that its cases have."""
    for outcome in ("passed", "failed"):
        found["score"][outcome] = sum(it["outcome"] == outcome for it in found["cases"])
    found["score"]["must"] = sum(it["must"] for it in found["cases"])
    found["score"]["absent"] = len(found["absent"])


@test("a certificate of which fields were forged does not hold, and each is named")
def forged(box):
    """Of a filtered run. Nothing runs again, since what is wrong is seen before; several fields at once, for time."""
    found, _ = certificate(box, "REF", "--filter", "memory/*", "--filter", "record/*", "--filter", "numerics/add/f32/*",
                           status=PASSED)
    check(found["worst"] and found["absent"] and any(not it["must"] for it in found["cases"]), "there is all to forge")

    def one(certificate):
        return next(it for it in certificate["cases"] if it["name"] == ONE)

    together = [
        [(lambda c: c["score"].update(passed=9999), "its score says 9999 passed"),
         (lambda c: c.update(certified="models"), "it says certified: models, and by its cases it is none"),
         (lambda c: c.update(status=1), "its status is 1, and by its cases 0"),
         (lambda c: c["subject"].update(build_id="0123"), "another build of the plugin: 0123"),
         (lambda c: c["subject"].update(sha256="4567"), "another file: 4567"),
         (lambda c: c["subject"].update(vendor="Acme"), 'it says vendor "Acme"'),
         (lambda c: c["subject"].pop("ops"), "it says ops nothing"),
         (lambda c: c["suite"].update(version="9"), "another version of the suite: 9"),
         (lambda c: c["suite"].update(build_id="89ab"), "another build of the suite: 89ab"),
         (lambda c: c["suite"].update(abi_minor=99), "it is of plugin ABI 1.99"),
         (lambda c: c["subject"].update(bytes=7), "it is of a file of 7 bytes"),
         (lambda c: c["run"].update(date=day(9) + "T00:00:00Z"), "is yet to come"),
         (lambda c: c["run"].update(kept=10 ** 6), "its run.kept is 1000000"),
         (lambda c: c["run"].update(host=""), "its run.host is missing"),
         (lambda c: c["run"].update(seconds=-1), "its run.seconds is -1")],
        [(lambda c: c["run"].update(date="today"), "its run.date “today” is no date"),
         (lambda c: c["run"].update(seed="1x"), "its run.seed “1x”"),
         (lambda c: c["run"].update(seconds=1e-9), "and one of its cases took")],
        [(lambda c: c["cases"].append({**one(c), "name": "memory/more"}), "a case memory/more, which there is not"),
         (lambda c: c["cases"].append(dict(c["cases"][0])), "twice"),
         (lambda c: one(c).update(must=False), f"{ONE} need not pass, which must"),
         (lambda c: one(c).update(level="stress"), f"{ONE} is of level stress, which is core"),
         (lambda c: c["absent"].append({"name": "memory/most", "reason": "none"}), "memory/most is absent: none; here it is not"),
         (lambda c: c["absent"][0].update(reason="why"), "is absent: why; here"),
         (lambda c: c["worst"][0].update(worst=-1.0), "its worst errors are not those of its cases"),
         (lambda c: c["capabilities"].clear(), "it says capabilities []")],
        [(lambda c: c["cases"].remove(one(c)), f"it leaves out the case {ONE}"),
         (lambda c: c["absent"].pop(), "it does not say that"),
         (lambda c: c["worst"].clear(), "its worst errors are not those of its cases"),
         (lambda c: c.pop("capabilities"), "it says capabilities nothing")],
        [(lambda c: one(c).update(outcome="failed"), "its status is 0, and by its cases 1")],
        [(lambda c: c["run"].update(filters=[]), "it leaves out the case hygiene/")],
        [(lambda c: c["run"].update(level="full"), "it leaves out the case memory/")]]
    for changes in together:
        copy = json.loads(json.dumps(found))
        for change, _ in changes:
            change(copy)
        out = conformance(box, "--verify", box.write("touched.json", json.dumps(copy)), status=FAILED).out
        for _, words in changes:
            check(words in out and "does not hold" in out and "ran again" not in out, f"“{words}” wanted\n{out}")
    # All came out otherwise than they did, and what follows from that was put right.
    copy = json.loads(json.dumps(found))
    for it in copy["cases"]:
        it.update(outcome="failed" if it["outcome"] == "passed" else it["outcome"])
    rescored(copy)
    copy["status"] = FAILED
    out = conformance(box, "--verify", box.write("touched.json", json.dumps(copy)), status=FAILED).out
    check("it says failed, and now it is passed" in out and "does not hold" in out, out)


@test("an interrupted run is resumed where it was")
def resume(box):
    """One case of the plugin hangs; the run is ended while it does."""
    argv = ("conformance", bad("submit-hang"), "--filter", "memory/size/1", "--filter", "memory/zero", "--jobs", "1")
    half = box.path("half.json")
    process = box.start(*argv, "--json", half)
    journal = []
    for _ in range(200):
        journal = [path for path in box.files("cache") if path.endswith(".jsonl") and os.path.getsize(path) > 0]
        if journal:
            break
        time.sleep(0.05)
    check(journal, "a finished case is kept")
    process.send_signal(signal.SIGINT)
    result = box.finish(process, 30)
    check(result.status == BELOW and re.search("^  memory +1 of 2 +1 not run$", result.out, re.M), result)
    out = conformance(box, "--verify", half, status=PASSED).out
    check("holds: 1 of its 2 cases ran again" in out and "certifies nothing" in out, out)
    # A line of the journal that is no result counts as none.
    with open(journal[0], "a", encoding="utf-8") as file:
        for line in ('{"name": "memory/zero", "outcome": 1}', '{"name": "memory/size/1", "outcome": "well"}', '{"outcome": "passed"}',
                     '{"name": "memory/size/1", "outcome": "passed", "messages": [1]}', '{"name": "memory/size/1", "outcome": "passed", "us": "x"}', "["):
            file.write(line + "\n")
    # Another run, of other cases or in another environment, neither ends that one nor takes its results.
    certificate(box, bad("submit-hang"), "--filter", "memory/zero", status=PASSED)
    found, _ = certificate(box, *argv[1:], "--resume", "--timeout-scale", "0.03", status=CRASHED, TINY_THREADS="1")
    check(found["run"]["kept"] == 0, found["run"])
    found, _ = certificate(box, *argv[1:], "--resume", "--timeout-scale", "0.03", status=CRASHED)
    check(found["run"]["kept"] == 1 and found["score"]["hung"] == 1 and found["score"]["passed"] == 1, found["run"])
    check(not [path for path in box.files("cache") if path.endswith(".jsonl")], "a run that is over leaves no journal")
    found, _ = certificate(box, *argv[1:], "--timeout-scale", "0.03", status=CRASHED)
    check(found["run"]["kept"] == 0)


@test("a killed run leaves no worker behind")
def orphans(box):
    process = box.start("conformance", bad("submit-hang"), "--filter", "memory/size/1", "--jobs", "1", TMPDIR=box.folder("tmp"))
    worker = None
    for _ in range(200):
        children = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_worker_of(pid, process.pid)]
        if children:
            worker = children[0]
            break
        time.sleep(0.05)
    check(worker is not None, "a worker runs")
    process.kill()
    process.communicate()
    for _ in range(100):
        if not is_worker_of(worker, None):
            return
        time.sleep(0.05)
    check(False, f"worker {worker} is still there")


def is_worker_of(pid, parent):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
            is_worker = "--serve" in file.read()
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return is_worker and fields[0] != "Z" and (parent is None or int(fields[1]) == parent)


main()
