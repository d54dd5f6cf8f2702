"""Output that jobs stream while they run.

sender.py    OutputSender    sends what the runs of a client's jobs emit, together
reader.py    OutputReader    reads it, with one subscription for all readers of a client
responses.py                 passes it to browsers as server-sent events
generated_commands.py        the scripts in lua/
"""

from aioqless.client.job.state import Emitted, Ended, Missed, Output, Restarted
from aioqless.contrib.output.reader import OutputReader, read_output
from aioqless.contrib.output.responses import HEADERS, encode_events, server_sent_events
from aioqless.contrib.output.sender import OutputSender, RunOutput, open_output

__all__ = [
    "HEADERS",
    "Emitted",
    "Ended",
    "Missed",
    "Output",
    "OutputReader",
    "OutputSender",
    "Restarted",
    "RunOutput",
    "encode_events",
    "open_output",
    "read_output",
    "server_sent_events",
]
