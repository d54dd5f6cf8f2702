"""Programs in other languages, with generated clients and without: `nox -s api_clients`."""
