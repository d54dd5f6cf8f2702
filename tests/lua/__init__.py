"""The state machine told in short stories, with literal times and a look at what Redis holds."""
