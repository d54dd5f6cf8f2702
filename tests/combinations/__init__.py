"""Where two features meet."""
