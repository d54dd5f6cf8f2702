"""Redis as it is deployed: full, behind TLS, with ACL users, Sentinel, Cluster.

All servers are real and listen on loopback.
"""
