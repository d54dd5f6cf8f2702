"""Names of keys for Python code that reads Redis without a script, as in lib/base/keys.lua."""

from __future__ import annotations

import re

from aioqless.store.inlining import key_functions


class Keys:
    """The keys of a namespace: `Keys("ql")("job", "123")` is b"ql:j:123"."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace.encode()
        self._parts = {
            name: _parts(parameters, spelling)
            for name, (parameters, spelling) in key_functions().items()
        }

    def __call__(self, name: str, *names: bytes | str) -> bytes:
        """Return a key.

        Raises:
            TypeError: There is no such key, or it has other parameters.
        """
        try:
            parameters, parts = self._parts[name]
            given = dict(zip(parameters, names, strict=True))
        except (KeyError, ValueError):
            raise TypeError(f"there is no key {name} of {len(names)} names") from None
        encoded = {
            parameter: each if isinstance(each, bytes) else each.encode()
            for parameter, each in given.items()
        }
        return b"".join(
            encoded.get(part, self.namespace) if isinstance(part, str) else part for part in parts
        )


def _parts(parameters: tuple[str, ...], spelling: str) -> tuple[tuple[str, ...], list[str | bytes]]:
    """Return the parameters of a key, and its parts: strings, and names of parameters or `ns`."""
    words = re.findall(
        r"'([^']*)'|(\w+)", re.sub(r"string\.format\('[^']*', (\w+)\)", r"\1", spelling)
    )
    return parameters, [name if name else text.encode() for text, name in words]
