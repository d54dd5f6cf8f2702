"""The worker with a real Redis: tests wait for what happens, and never sleep to be safe."""
