"""Partitions: one namespace over all nodes of a Redis Cluster.

client.py         PartitionedClient   a client of all partitions
access.py         PartitionedAccess   a client of each partition, over shared connections
nodes.py          NodeConnections     one connection to each node of the Cluster
routing.py                            which partition a job belongs to, and their namespaces
sender.py         PartitionedSender   puts each job into its partition
store.py          PartitionedStore    sends each command to the partitions that it concerns
sums.py                               makes one reply of the replies of all partitions
shares.py                             the limits of a queue, divided among the partitions
worker.py         PartitionedWorker   runs the jobs of all partitions
turns.py          Turns               when each partition of a worker may pop
outages.py        NodeOutages         which nodes can be reached
subscriber.py                         the messages of all partitions, one subscription to each node
"""

from aioqless.contrib.partitions.access import WrongPartitions
from aioqless.contrib.partitions.client import PartitionedClient
from aioqless.contrib.partitions.worker import PartitionedWorker

__all__ = ["PartitionedClient", "PartitionedWorker", "WrongPartitions"]
