"""No Redis here: what can be said of the code alone."""
