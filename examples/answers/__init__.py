"""Answers of a model, streamed from jobs to web pages: `python -m examples.answers`."""
