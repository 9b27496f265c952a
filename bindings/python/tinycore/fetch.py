# SPDX-License-Identifier: MIT
"""Files by their address: what Tensor.from_url() reads.

What comes over a network is kept in the cache folder under the hash of its address, with the hash of its contents beside
it; what does not have that any more is fetched again. Files are whole or absent."""
import contextlib
import gzip
import os
import pathlib
import secrets
import stat
import urllib.error
import urllib.parse
import urllib.request
import zlib
from hashlib import sha256 as hash_of

from .data import open_regular
from .errors import FileError, FormatError, InvalidError

TIMEOUT = 60  # seconds without a byte
PART = 1 << 20
KEPT = ("http", "https")


def cache_folder():
    """Where downloads are: beside the library's compiled programs."""
    own = os.environ.get("TINY_CACHE_DIR")
    if own:
        return pathlib.Path(own) / "downloads"
    from gi.repository import GLib
    return pathlib.Path(GLib.get_user_cache_dir()) / "tinycore-1.0" / "downloads"


def digest_of(path):
    found = hash_of()
    with open(path, "rb", opener=open_regular) as file:
        while part := file.read(PART):
            found.update(part)
    return found.hexdigest()


def new_file(beside):
    """A file without a name in the folder of @beside, and False; where the file system has none, one of that name, and True."""
    try:
        file = os.fdopen(os.open(os.path.dirname(beside), os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666), "wb")
    except (OSError, AttributeError):
        return open(beside, "xb"), True
    if os.path.exists(f"/proc/self/fd/{file.fileno()}"):
        return file, False
    file.close()
    return open(beside, "xb"), True


@contextlib.contextmanager
def whole_file(path):
    """A file to write to, which takes the place of @path at the end of a block without an exception, by the rules of
    base/tiny-whole-file.h."""
    path = os.fsdecode(path)
    place = os.path.realpath(path)
    try:
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        raise FileError(f"{path}: it is {'a folder' if stat.S_ISDIR(mode) else 'no regular file'}")
    beside = os.path.join(os.path.dirname(place), f".writing-{secrets.token_hex(8)}")
    try:
        file, is_named = new_file(beside)
    except OSError as error:  # names what the caller named, not the file beside it
        raise type(error)(error.errno, error.strerror, path) from None
    with file:
        try:
            if mode is not None:
                os.fchmod(file.fileno(), mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not is_named:  # it is whole, and has another name for a moment
                os.link(f"/proc/self/fd/{file.fileno()}", beside, src_dir_fd=file.fileno(), follow_symlinks=True)
                is_named = True
            file.close()
            os.replace(beside, place)
        except BaseException:
            if is_named:
                os.unlink(beside)
            raise


def write_whole(path, parts):
    """A file that is there when it is complete; the hash of what it holds."""
    found = hash_of()
    with whole_file(path) as file:
        for part in parts:
            found.update(part)
            file.write(part)
    return found.hexdigest()


def parts_of(answer, url):
    """The bytes of an answer, all of them."""
    wanted, n = answer.headers.get("Content-Length"), 0
    while part := answer.read(PART):
        n += len(part)
        yield part
    if wanted is not None and n != int(wanted):
        raise FileError(f"from_url: {url}: {n} bytes came, {wanted} were announced")


def opened(url, timeout):
    try:
        return urllib.request.urlopen(url, timeout=timeout)
    except (OSError, urllib.error.URLError) as error:
        raise FileError(f"from_url: {url}: {getattr(error, 'reason', None) or error}") from None


def check(url, found, wanted):
    if wanted not in (None, found):
        raise FormatError(f"from_url: {url}: the SHA-256 is {found}, not {wanted}")


def kept_file(url, timeout, sha256):
    """The file in the cache that has what is at @url."""
    path = cache_folder() / hash_of(url.encode()).hexdigest()
    mark = path.with_suffix(".sha256")
    try:
        if digest_of(path) == mark.read_text() and sha256 in (None, mark.read_text()):
            return path
    except OSError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened(url, timeout) as answer:
        try:
            found = write_whole(path, parts_of(answer, url))
        except (OSError, ValueError) as error:
            raise error if isinstance(error, FileError) else FileError(f"from_url: {url}: {error}") from None
    if sha256 not in (None, found):
        path.unlink()
    check(url, found, sha256)
    write_whole(mark, [found.encode()])
    return path


def bytes_at(url, gunzip=False, timeout=TIMEOUT, sha256=None):
    """What is at an address with file, http or https; @sha256 is what its hash has to be."""
    sha256 = sha256 and sha256.lower()
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in (*KEPT, "file"):
        raise InvalidError(f"from_url: {url} begins with none of file:, http:, https:")
    if scheme == "file":
        with opened(url, timeout) as file:
            data = file.read()
        check(url, hash_of(data).hexdigest(), sha256)
    else:
        data = kept_file(url, timeout, sha256).read_bytes()
    try:
        return gzip.decompress(data) if gunzip else data
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"from_url: {url} is no gzip file: {error}") from None
