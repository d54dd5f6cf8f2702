"""An independent model of the scripts, and a test that runs both and compares them.

Hypothesis generates the calls; every reply and every key must agree.
"""
