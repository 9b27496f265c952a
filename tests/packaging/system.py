# SPDX-License-Identifier: MIT
"""A minimal system of the kind this machine runs, in a folder, made from the machine's own apt sources
and thrown away. Needs root: mmdebstrap, mounts and chroot."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

# What a command sees of this system: /proc, the downloaded packages, and none of the host's settings.
ENTER = """
root=$1 archives=$2 user=$3; shift 3
mount -t proc proc "$root/proc"
mount --bind "$archives" "$root/srv/archives"
exec chroot --userspec="$user" "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$HOME_INSIDE" LC_ALL=C.UTF-8 \
  DEBIAN_FRONTEND=noninteractive "$@"
"""
USER = "tester"
APT = ["apt-get", "-q", "-y", "-o", "Dir::Cache::Archives=/srv/archives", "-o", "APT::Sandbox::User=root",
       "-o", "Binary::apt-get::APT::Keep-Downloaded-Packages=true", "--no-install-recommends"]
# What changes by itself, with any package.
RESTLESS = re.compile(r"^(proc|sys|dev|srv)/|/__pycache__/|^var/(lib/apt|cache/apt|cache/ldconfig|cache/man|cache/debconf|log/apt)/|^var/log/(dpkg|alternatives|faillog|lastlog)"
                      r"|^var/lib/dpkg/(status|status-old|available|available-old|lock|lock-frontend|diversions-old|statoverride-old"
                      r"|triggers/.*)$|^etc/ld\.so\.cache$")


class Failure(Exception):
    """Something that a command or a check says."""


def run(command, what=None, good=(0,), **more):
    """Its output; a Failure with it when it ends otherwise than @good."""
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **more}
    done = subprocess.run([str(word) for word in command], errors="replace", **more)
    if done.returncode not in good:
        shown = " ".join(str(word) for word in command)
        raise Failure(f"{what or shown}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def release():
    text = pathlib.Path("/etc/os-release").read_text()
    values = dict(re.findall(r'^(\w+)="?(.*?)"?$', text, re.M))
    return values["ID"], values["VERSION_CODENAME"]


def sources():
    """sources.list of the distribution itself; what else this machine has in its sources is left out."""
    origin = release()[0]
    fields = "$(ORIGIN)\t$(SIGNED_BY)\t$(REPO_URI)\t$(RELEASE)\t$(COMPONENT)"
    listed = run(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])
    lines = []
    for line in listed.splitlines():
        found, signed, uri, suite, component = line.split("\t")
        if found.lower() == origin and component in ("main", "universe"):
            option = f"[signed-by={signed}] " if signed.startswith("/") else ""
            lines.append(f"deb {option}{uri} {suite} {component}")
    if not lines:
        raise Failure(f"apt has no source of {origin}; run apt-get update")
    return "\n".join(dict.fromkeys(lines)) + "\n"


def apt_settings():
    """How this machine reaches its mirror."""
    dump = run(["apt-config", "dump"])
    return "".join(line + "\n" for line in dump.splitlines()
                   if re.match(r"Acquire::(https?::|Check-|Retries)", line) and not line.endswith('"";'))


def base(folder):
    """A tar file of the smallest system, kept in @folder for the next run."""
    text, settings = sources(), apt_settings()
    key = hashlib.sha256((text + settings).encode()).hexdigest()[:16]
    path = folder / f"base-{key}.tar"
    if path.exists():
        return path
    for old in folder.glob("base-*"):
        old.unlink()
    (folder / "apt.conf").write_text(settings)
    run(["mmdebstrap", "--mode=root", "--variant=minbase", "--format=tar", f"--aptopt={folder / 'apt.conf'}",
         release()[1], f"{path}.new", "-"], input=text, stdin=None)
    os.rename(f"{path}.new", path)
    return path


class System:
    """One such system. @debs: a folder of packages that its apt knows besides the mirror's."""

    def __init__(self, work, name, debs):
        self.root, self.archives = work / name, work / "archives"
        self.archives.mkdir(exist_ok=True)
        (self.archives / "partial").mkdir(exist_ok=True)
        self.root.mkdir()
        run(["tar", "-C", self.root, "-xf", base(work), "--numeric-owner", "--exclude=./dev/*"])
        (self.root / "srv/archives").mkdir()
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        (self.root / "etc/apt/apt.conf.d/99test").write_text(apt_settings())
        self.inside(["sh", "-c", "cd /dev && for d in 'null 3' 'zero 5' 'full 7' 'random 8' 'urandom 9'; do "
                     "set -- $d; mknod -m 666 $1 c 1 $2; done; mkdir -p shm; chmod 1777 shm"])
        self.inside(["useradd", "--create-home", USER])
        shutil.copytree(debs, self.root / "srv/debs")
        run(["sh", "-c", "dpkg-scanpackages --multiversion . >Packages 2>/dev/null"], cwd=self.root / "srv/debs")
        (self.root / "etc/apt/sources.list.d/test.list").write_text("deb [trusted=yes] file:/srv/debs ./\n")
        self.inside([*APT, "update"])

    def inside(self, command, user="root", good=(0,), env=()):
        """Runs @command in the system; its mounts end with it."""
        home = "/root" if user == "root" else f"/home/{user}"
        return run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "enter", self.root,
                    self.archives, user, *env, *command], " ".join(command), good, env={**os.environ, "HOME_INSIDE": home})

    def program(self, *command, good=(0,), folder="", **env):
        """As a user runs it, in a folder of the home."""
        there = ["sh", "-c", 'cd "$HOME/$0" && exec "$@"', folder]
        return self.inside([*there, *command], USER, good, [f"{name}={text}" for name, text in env.items()])

    def install(self, *packages):
        return self.inside([*APT, "install", *packages])

    def installed(self):
        listed = self.inside(["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n"])
        return {line.split()[1] for line in listed.splitlines() if line.startswith("ii")}

    def files(self):
        """Every path there is but those that any installation changes."""
        found = set()
        for folder, folders, names in os.walk(self.root):
            for name in [*folders, *names]:
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if not RESTLESS.search(path):
                    found.add(path)
        return found

    def remove(self):
        shutil.rmtree(self.root)
