# SPDX-License-Identifier: MIT
"""The files of the tree, for the checks beside this file: what git knows, else all but builds and caches."""
import os
import pathlib
import subprocess


def files(root):
    root = pathlib.Path(root)
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "-c", f"safe.directory={root}", "ls-files", "-z",
                   "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode == 0:
            paths = (root / name for name in done.stdout.split("\0") if name)
            return sorted(p for p in paths if p.is_file())
    out = []
    for folder, names, leaves in os.walk(root):
        at_root = pathlib.Path(folder) == root
        names[:] = [n for n in names if n != "__pycache__" and (not n.startswith(".") or n == ".ci")
                    and not (at_root and n.startswith("build"))]
        out += [pathlib.Path(folder) / leaf for leaf in leaves]
    return sorted(out)


def report(name, found, n_seen, least):
    """Prints @found and says how it ends; too little seen means that the check itself is broken."""
    print("\n".join(found) if found else f"{name}: {n_seen} seen, nothing wrong")
    if n_seen < least:
        print(f"{name}: only {n_seen} seen, expected {least} at least")
    return 1 if found or n_seen < least else 0
