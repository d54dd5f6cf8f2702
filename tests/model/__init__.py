"""An independent model of the scripts, and a test that drives both through the same life and
compares them."""
