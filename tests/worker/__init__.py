"""The worker with a real Redis: tests wait for events, and never sleep to be safe."""
