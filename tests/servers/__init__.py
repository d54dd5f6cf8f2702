"""Redis as people run it: full, behind TLS, with users, sentinels, a Cluster; each of them real, on
loopback."""
