"""Extensions: each is built on the public client API and can be deleted without touching the
queue."""
