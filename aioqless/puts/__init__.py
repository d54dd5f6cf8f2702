"""Jobs on their way in.

terms.py   Terms    on which they are put: uniqueness, limits, rates
new.py     NewJob   what is put, and with which options
puts.py    Puts     sends it: puts that come together travel together
"""

from aioqless.puts.new import NewJob, OnFailed, PutOptions
from aioqless.puts.puts import Puts, batches, put_batch

__all__ = ["NewJob", "OnFailed", "PutOptions", "Puts", "batches", "put_batch"]
