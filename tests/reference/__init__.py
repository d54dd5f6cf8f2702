"""The generated parts of docs/reference/*.md."""
