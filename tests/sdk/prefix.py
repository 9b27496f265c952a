# SPDX-License-Identifier: MIT
"""tinycore installed in a folder of its own, and projects outside of its tree built against that."""
import glob
import json
import os
import subprocess

import e2e


def run(*argv, **env):
    result = subprocess.run(argv, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    e2e.check(result.returncode == 0, f"$ {' '.join(argv)}\n{result.stdout[-3000:]}")
    return result.stdout


class Prefix:
    """An installation of the build TINY_SDK_BUILD below @folder; e2e's boxes run its command from then on."""

    def __init__(self, folder):
        run("meson", "install", "-C", os.environ["TINY_SDK_BUILD"], "--no-rebuild", "--quiet", DESTDIR=folder)
        self.folder = folder
        pc_files = glob.glob(f"{folder}/**/pkgconfig/*.pc", recursive=True)
        e2e.check(pc_files, "no .pc file was installed")
        for path in pc_files:  # as if it had been configured for that folder
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("prefix=/", f"prefix={folder}/", 1))
        self.pkg_config_path = os.path.dirname(pc_files[0])
        command, = glob.glob(f"{folder}/**/bin/tinycore", recursive=True)
        self.root = os.path.dirname(os.path.dirname(command))
        helper, = glob.glob(f"{folder}/**/tiny-scan", recursive=True)
        self.env = {"TINY_SCAN_HELPER": helper, "TINY_PLUGIN_PATH": None,
                    "LD_LIBRARY_PATH": os.path.dirname(self.pkg_config_path)}
        e2e.TINYCORE = command

    def install(self, source, build):
        """Builds the meson project @source in folder @build and installs it; what its compiler was called with."""
        run("meson", "setup", build, source, PKG_CONFIG_PATH=self.pkg_config_path)
        run("meson", "install", "-C", build)
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            return [each["command"] for each in json.load(file)]
