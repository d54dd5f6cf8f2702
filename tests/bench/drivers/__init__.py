"""One driver for each queue that is measured: its jobs, its client, its worker, each as its
documentation has them."""
