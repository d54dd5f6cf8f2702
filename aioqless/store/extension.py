"""The commands of an extension: scripts of its own, which a store sends as it sends the core's."""

from __future__ import annotations

from aioqless.store.call import Commands
from aioqless.store.generated_commands import Store


class ExtensionCommands(Commands):
    """The commands of an extension on the namespace of a store.

    Its subclass is generated from the headers in the extension's folder `lua`.

    Args:
        store: Sends the calls.
    """

    def __init__(self, store: Store) -> None:
        self.namespace = store.namespace
        self.clock = store.clock
        self.send = store.send
