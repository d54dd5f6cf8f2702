"""The documentation site that `nox -s docs` has built."""
