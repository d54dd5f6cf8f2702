"""Import of a file of rows with a progress bar: `python -m examples.csv_import`."""
