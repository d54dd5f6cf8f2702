"""Jobs on their way in.

terms.py   Terms    on which they are put: uniqueness, limits, rates
new.py     NewJob   what is put, and with which options
puts.py    Puts     sends it: puts that come together travel together
room.py    Patience waiting for room where there is none
"""

from aioqless.client.put.backpressure import Patience, put_patiently
from aioqless.client.put.new_job import Klass, NewJob, OnFailed, PutOptions
from aioqless.client.put.put_batcher import Puts, in_batches, put_batch

__all__ = [
    "Klass",
    "NewJob",
    "OnFailed",
    "Patience",
    "PutOptions",
    "Puts",
    "in_batches",
    "put_batch",
    "put_patiently",
]
