# SPDX-License-Identifier: MIT
"""A folder served to a headless Chromium, and what its pages send back."""
import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading

from e2e import check

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ("--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions")
WEBGPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.answers.put(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def find_browser():
    """A machine without Chromium fails the test: ./setup test installs it."""
    command = next((path for path in map(shutil.which, NAMES) if path), None)
    check(command is not None, f"there is none of {', '.join(NAMES)}; ./setup test installs chromium")
    return command


def open_file(path, timeout=60):
    """The document that a browser makes of a file, as text."""
    with tempfile.TemporaryDirectory(prefix="tiny-browser-", ignore_cleanup_errors=True) as profile:
        said = subprocess.run([find_browser(), *QUIET, f"--user-data-dir={profile}", "--dump-dom", f"file://{path}"],
                              env={**os.environ, "XDG_RUNTIME_DIR": profile, "HOME": profile}, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True)
    check(said.returncode == 0, said.stderr[-1500:])
    return said.stdout.decode(errors="replace")


def open_page(folder, page, flags=WEBGPU, timeout=60):
    """What @page of @folder posts first."""
    command = find_browser()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a browser may close what is being sent
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *args: Handler(*args, directory=folder))
    server.answers = queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    profile = tempfile.mkdtemp(prefix="tiny-browser-")
    log = os.path.join(profile, "log")
    with open(log, "wb") as out:
        browser = subprocess.Popen(
            [command, *QUIET, f"--user-data-dir={profile}", *flags,
             f"http://127.0.0.1:{server.server_port}/{page}"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env={**os.environ, "XDG_RUNTIME_DIR": profile, "HOME": profile})
    try:
        return server.answers.get(timeout=timeout)
    except queue.Empty:
        with open(log, errors="replace") as out:
            raise AssertionError(f"{page} sent nothing in {timeout} s\n{out.read()[-1500:]}") from None
    finally:
        os.killpg(browser.pid, 9)
        browser.wait()
        server.shutdown()
        server.server_close()
        shutil.rmtree(profile, ignore_errors=True)
