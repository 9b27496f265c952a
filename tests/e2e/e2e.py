# SPDX-License-Identifier: MIT
"""What every end-to-end test uses: a private place to run the command in, and TAP on the way out.

A script registers functions with @test (…) and ends with main (). Each test gets a Box: a temporary
folder with its own cache and an empty working folder; the command runs there with nothing of
the caller's DEV, DEBUG or caches. A test that lacks something raises Skip with the reason.
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

PASSED_ON = ("TINY_PLUGIN_PATH", "TINY_SCAN_HELPER", "TINY_CONFORMANCE_HELPER", "TINY_WEBGPU_LIBRARY", "LD_LIBRARY_PATH", "ASAN_OPTIONS",
             "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS")
TINYCORE = os.environ.get("TINY_E2E_COMMAND", "tinycore")
tests = []


class Skip(Exception):
    """The test cannot run here; its text says why."""


def test(name):
    def register(function):
        tests.append((name, function))
        return function
    return register


def need(command):
    path = shutil.which(command)
    if path is None:
        raise Skip(f"there is no {command}")
    return path


class Result:
    """A finished command: status, out and err as text, raw bytes of out, times in milliseconds."""

    def __init__(self, argv, status, raw, err, wall_ms, cpu_ms):
        self.argv, self.status, self.raw, self.err = argv, status, raw, err
        self.out = raw.decode(errors="replace")
        self.wall_ms, self.cpu_ms = wall_ms, cpu_ms

    def __str__(self):
        return (f"$ {' '.join(self.argv)}\nstatus {self.status}\n--- stdout\n{self.out[-1500:]}"
                f"\n--- stderr\n{self.err[-1500:]}")

    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def good(self):
        """Ended well and in silence."""
        check(self.status == 0, f"exit status 0 wanted\n{self}")
        return self

    def quiet(self):
        check(self.err == "", f"nothing on standard error wanted\n{self}")
        return self.good()

    def refused(self, *parts, status=1):
        """Ended with @status and one clear message that holds every one of @parts."""
        check(self.status == status, f"exit status {status} wanted\n{self}")
        check(self.err.startswith(("tinycore", "usage:")), f"a message of tinycore wanted\n{self}")
        check(len(self.err) < 4000, f"a message that can be read wanted\n{self}")
        for part in parts:
            check(part in self.err, f"“{part}” wanted in the message\n{self}")
        for part in ("(null)", "CRITICAL", "Assertion", "%s", "Sanitizer"):
            check(part not in self.err, f"“{part}” in the message\n{self}")
        return self


class Box:
    """A private place: cache, home and an empty working folder."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="tiny-e2e-")
        os.chmod(self.root, 0o755)
        self.cache = self.path("cache")
        self.work = self.folder("work")
        self.keep = set()

    def path(self, *names):
        return os.path.join(self.root, *names)

    def folder(self, *names):
        path = self.path(*names)
        os.makedirs(path, exist_ok=True)
        return path

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    def environment(self, changes=None):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("TINY_", "XDG_", "G_")) or name in PASSED_ON}
        for name in ("DEV", "DEBUG", "BACKEND"):
            env.pop(name, None)
        env.update(HOME=self.root, XDG_CACHE_HOME=self.path("xdg"), TINY_CACHE_DIR=self.cache,
                   LC_ALL="C.UTF-8")
        for name, value in (changes or {}).items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = str(value)
        return env

    def start(self, *argv, before=(), **env):
        """Starts tinycore ARGV…; @before is a command in front of it, such as strace."""
        whole = [*before, TINYCORE, *map(str, argv)]
        return subprocess.Popen(whole, cwd=self.work, env=self.environment(env),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, process, timeout=240):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"not done after {timeout} s: {process.args}\n{err.decode()[-800:]}")
        return Result(process.args, process.returncode, out, err.decode(errors="replace"), 0, 0)

    def run(self, *argv, before=(), timeout=240, **env):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        result = self.finish(self.start(*argv, before=before, **env), timeout)
        result.wall_ms = (time.monotonic() - start) * 1e3
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        result.cpu_ms = (now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime) * 1e3
        check(result.status >= 0, f"killed by signal {-result.status}\n{result}")
        check("runtime error: " not in result.err, f"a sanitizer reports\n{result}")
        check(not os.listdir(self.work), f"stray files {os.listdir(self.work)}\n{result}")
        return result

    def files(self, *names):
        """Every file below a folder of the box."""
        return sorted(os.path.join(folder, name) for folder, _, found in os.walk(self.path(*names))
                      for name in found)

    def clear(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.root], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.root, ignore_errors=True)


def check(condition, text="it does not hold"):
    if not condition:
        raise AssertionError(text)


def near(a, b, bound, what=""):
    check(abs(a - b) <= bound, f"{what}: {a} and {b} differ by more than {bound}")


def note(text):
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def run_one(number, name, function):
    box = Box()
    start = time.monotonic()
    try:
        function(box)
        print(f"ok {number} - {name}", flush=True)
        note(f"{time.monotonic() - start:.1f} s")
        return True
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        return True
    except Exception as error:
        known = isinstance(error, AssertionError)
        note(error if known else traceback.format_exc())
        if known:
            note("".join(traceback.format_tb(error.__traceback__)[1:2]))
        print(f"not ok {number} - {name}", flush=True)
        return False
    finally:
        box.clear()


def main():
    wanted = sys.argv[1:]
    chosen = [(name, function) for name, function in tests
              if not wanted or any(re.search(part, name) for part in wanted)]
    if not chosen:
        sys.exit(f"no test has {' or '.join(wanted)} in its name")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(f"1..{len(chosen)}", flush=True)
    results = [run_one(i + 1, name, function) for i, (name, function) in enumerate(chosen)]
    sys.exit(0 if all(results) else 1)
