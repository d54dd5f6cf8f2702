"""How the command line shows things: tables, JSON, prompts, job details. It reads no Redis."""
