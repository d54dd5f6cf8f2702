"""A program in another language puts receipts over HTTP: `python -m examples.http_api`."""
