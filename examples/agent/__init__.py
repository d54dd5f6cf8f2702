"""An agent that asks a language model what to do, and a person before it sends anything.

`python -m examples.agent` asks on the terminal; kill it at any moment and run it again: paid calls
aren't made twice.

jobs.py       the agent: a handler, whose steps are calls of the model and of its tools
model.py      a fake model behind a real HTTP server
__main__.py   runs both, and sends the approval
"""
