"""The worker: parts, each with what it alone may change.

worker.py        Worker         the parts' life: starts them, and stops them in order
settings.py      Settings       how one worker behaves

from Redis:
poller.py        Poller         asks Redis for as many jobs as there are free slots; owns when it asks next
subscriptions.py Subscriptions  which queues, with which limits, in which order
late.py                         jobs whose locks may have run out on their way here
share.py         Share          how much it does before it makes room for a fresh one
eviction.py                     whether Redis may delete jobs to make room
outage.py        Outage         whether Redis is away, and when it is tried again

through a handler:
runner.py        Runner         owns the table of running jobs; starts, stops and sees each through
run.py           Run            one attempt of one job
perform.py                      calls a handler
executors/       Executors      where it runs, when that isn't the loop: threads and processes
outcome.py                      what a run came to: `outcome_of` decides, without any I/O

and back:
finisher.py      Finisher       stores outcomes until Redis has them; owns those that are pending

while it runs:
heart.py         Heart          renews every running job's lock, on a loop and a connection of its own
heartbeater.py   Heartbeater    keeps the heart beating in a thread of its own; stops the runs whose locks it finds lost
pulse.py         Pulse          whether the worker's loop answers, and whose code keeps it from that
stacks.py                       the lines that a run has come to

what it hears:
listener.py      Listener       hears of ready work and of jobs taken away; owns the subscription
orders.py        Orders         carries out what is told from outside
unread.py        Unread         looks whether anybody takes away what the archive keeps

where that is asked for:
scheduler.py     Scheduler      makes recurring jobs whose cron expression says now; owns its timer
declarations.py  Declarations   the recurring jobs that handlers declare
intake.py        Intake         takes over what clients of other systems push; owns when it looks next
incarnation.py   Incarnation    the claim to a stable name, and what a former life of it left
"""

from aioqless.worker.outcome import Fail, Next, Retry
from aioqless.worker.settings import Settings
from aioqless.worker.subscriptions import Subscription
from aioqless.worker.worker import Worker

__all__ = ["Fail", "Next", "Retry", "Settings", "Subscription", "Worker"]
