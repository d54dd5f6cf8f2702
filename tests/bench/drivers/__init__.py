"""One driver per queue library: its jobs, client and worker, written as its documentation says."""
