# SPDX-License-Identifier: MIT
"""An installation in a folder of its own, for what is built and run from packages alone."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
from e2e import check  # noqa: E402


# Sanitizers of the build, for what is loaded beside it and not shipped.
SANITIZERS = os.environ.get("TINY_SDK_SANITIZERS")
SANITIZED_OPTIONS = [f"-Db_sanitize={SANITIZERS}", "-Db_lundef=false"] if SANITIZERS else []
SANITIZED_FLAGS = [f"-fsanitize={SANITIZERS}"] if SANITIZERS else []


class Prefix:
    """The tree of the build folder TINY_E2E_BUILD, installed below @folder and moved there as a whole."""

    def __init__(self, folder):
        build = os.environ["TINY_E2E_BUILD"]
        self.call("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder)
        self.root = next(pathlib.Path(folder).rglob("bin/tinycore")).parents[1]
        for file in self.root.rglob("*.pc"):
            file.write_text(re.sub("^prefix=.*$", f"prefix={self.root}", file.read_text(), flags=re.M))
        self.packages = next(self.root.rglob("tinycore-1.0.pc")).parent

    def environment(self, changes=None):
        """Nothing of ours but the installation."""
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("TINY_") and name not in ("DEV", "DEBUG", "BACKEND")}
        env["PATH"] = f"{self.root / 'bin'}:{env['PATH']}"
        env["PKG_CONFIG_PATH"] = str(self.packages)
        env["LD_LIBRARY_PATH"] = str(self.packages.parent)
        env.update(changes or {})
        return env

    def call(self, *argv, folder=None, env=None, status=0):
        """Runs a command, which has to end with @status, and gives what it says."""
        done = subprocess.run([str(word) for word in argv], cwd=folder, env=env, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode == status, f"$ {' '.join(map(str, argv))}\nstatus {done.returncode}\n{done.stdout[-3000:]}")
        return done.stdout

    def build(self, folder, *options):
        """Builds the meson project in @folder against the installation, without a warning."""
        env = self.environment()
        self.call("meson", "setup", "build", "--prefix", self.root, "--werror", *options, folder=folder, env=env)
        self.call("ninja", "-C", "build", folder=folder, env=env)
        return pathlib.Path(folder) / "build"
