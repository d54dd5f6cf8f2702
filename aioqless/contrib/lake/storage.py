"""Where a lake is stored: a local folder, or a prefix in a bucket of an object store.

delta-rs reads and writes all of it, so that no Hadoop file system is involved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler

from aioqless.errors import AioqlessError

# Each scheme with the beginning of the environment variables that hold its settings.
_STORES: Final = {
    "s3": ("AWS_",),
    "s3a": ("AWS_",),
    "gs": ("GOOGLE_",),
    "az": ("AZURE_",),
    "abfs": ("AZURE_",),
    "abfss": ("AZURE_",),
}
_URL: Final = re.compile(r"([A-Za-z][\w+.-]+):/")
_FAIL_SOON: Final = {"max_retries": "2", "retry_timeout": "10s", "connect_timeout": "5s"}
_DECORATION: Final = re.compile(r"\x1b\[\d*m|\u21b3")


class LakeError(AioqlessError):
    """The lake isn't there, can't be reached, is of another version, or is in use."""


class StoreUnreachable(LakeError):
    """The object store doesn't answer, which may pass."""


@dataclass(frozen=True)
class Storage:
    """A place under which files are read and written by relative paths.

    `url` is an absolute local path, or the URL of an object store. `options` are delta-rs' own, and
    may hold secrets, so they are not shown. Tasks on other machines get the driver's options.
    """

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether this is a folder of the local file system."""
        return "://" not in self.url

    @property
    def filesystem(self) -> pafs.FileSystem:
        """Return the files below this place, as pyarrow's file system."""
        if self.is_local:
            return pafs.SubTreeFileSystem(self.url, pafs.LocalFileSystem())
        return pafs.PyFileSystem(DeltaStorageHandler(self.url, dict(self.options)))

    def within(self, path: str) -> Storage:
        """Return a place below this one."""
        return Storage(f"{self.url.rstrip('/')}/{path}", self.options)

    def list_names(self) -> list[str]:
        """List what is directly below this place, without retrying for long.

        Raises:
            LakeError: The place can't be listed; the text says why.
        """
        if self.is_local:
            folder = Path(self.url)
            return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
        selector = pafs.FileSelector("", allow_not_found=True)
        try:
            handler = DeltaStorageHandler(self.url, {**_FAIL_SOON, **self.options})
            return sorted(each.base_name for each in handler.get_file_info_selector(selector))
        except (OSError, DeltaError) as error:
            raise explain_failure(self.url, error) from None

    def make_durable(self, paths: list[str]) -> None:
        """Force files and their folders to disk, so that a power cut can't take them."""
        if not self.is_local:
            return
        files = [Path(self.url, path) for path in paths]
        for path in [*files, *{each.parent for each in files}]:
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError:  # another process has deleted what it had added
                continue
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def locate(url: str | os.PathLike[str]) -> Storage:
    """Return the storage of a path or URL; settings come from the environment.

    Raises:
        LakeError: The scheme is unknown, or the path has characters that delta-rs would misread.
    """
    text = os.fspath(url)
    scheme = found[1].lower() if (found := _URL.match(text)) else ""
    if scheme in ("", "file"):
        return Storage(_local_path(text))
    if scheme not in _STORES:
        raise LakeError(
            f"{text}: a lake is a local folder or a URL of {', '.join(_STORES)}, not of {scheme}"
        )
    parts = urlsplit(text)
    if not parts.netloc or re.search(r"[\\%?#]", text):
        raise LakeError(
            rf"{text}: write {scheme}://bucket/prefix, without any of the characters \ % ? #"
        )
    settings = {
        name: value for name, value in os.environ.items() if name.startswith(_STORES[scheme])
    }
    return Storage(text.rstrip("/"), settings)


def _local_path(text: str) -> str:
    if _URL.match(text):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise LakeError(f"{text}: a file URL names no host; write file:///folder")
        text = unquote(parts.path)
    path = str(Path(text).absolute())
    if re.search(r"[\\\[\]^|]|%[0-9A-Fa-f]{2}", path):
        raise LakeError(
            rf"{path}: a lake's path can't have \ [ ] ^ | or % with two hexadecimal digits, "
            "which delta-rs misreads"
        )
    return path


def remedy(table: str) -> str:
    """Return what to do about a table that can't be used; Delta's RESTORE keeps the protocol."""
    if re.search(r"(^|/)(bronze|quarantine)(/|$)", table):
        return "put back a copy of its folder from before"
    return "delete its folder; `aioqless lake tables` makes it again"


def explain_failure(url: str, error: BaseException) -> LakeError:
    """Return an error that says why an object store refused, out of delta-rs' nested messages."""
    text = " ".join(_DECORATION.sub(" ", str(error)).split())
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        return LakeError(f"{url}: the bucket doesn't exist")
    if re.search(r"169\.254\.169\.254|[Cc]redential|must be specified|metadata\.google", text):
        return LakeError(f"{url}: no credentials; set those of the object store in the environment")
    if re.search(r"\b40[13]\b|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch", text):
        return LakeError(f"{url}: the credentials are refused or don't allow this")
    if re.search(r"Connect|dns|timed out|error sending request", text):
        return StoreUnreachable(f"{url}: the object store can't be reached")
    if re.search(r"[Pp]arquet|Generic delta kernel error|[Ll]og|[Jj]son|metadata", text):
        return LakeError(f"{url} is damaged: {remedy(url)}. ({text[:300]})")
    return LakeError(f"{url}: {text[:300]}")
