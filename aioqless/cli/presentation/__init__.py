"""How the command line shows and reads things: tables, JSON, prompts, completion."""
