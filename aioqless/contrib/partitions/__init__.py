"""Partitions: one namespace over all nodes of a Redis Cluster.

client.py   PartitionedClient   a client of all partitions
routing.py                      which partition a job belongs to, and what partitions are called
sender.py   PartitionedSender   puts each job into its partition
store.py    PartitionedStore    sends a command to the partitions that it concerns
merging.py                      makes one reply of those of all partitions
"""

from aioqless.contrib.partitions.client import PartitionedClient

__all__ = ["PartitionedClient"]
