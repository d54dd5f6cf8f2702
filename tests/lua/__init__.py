"""The state machine in short scenarios, with literal times and assertions on the keys of Redis."""
