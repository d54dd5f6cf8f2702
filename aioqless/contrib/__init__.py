"""Extensions: built on the public client API; the queue works without any of them."""
