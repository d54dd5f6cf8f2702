"""Pictures of the Mandelbrot set: a request puts a job, a worker in the web server draws it.

    python -m examples.web                  # open http://127.0.0.1:8000
    python -m examples.web --no-worker      # the worker is a process of its own:
    python -m aioqless worker examples.web.jobs -q pictures

Start with app.py: a worker in a lifespan, a job from a request, its progress as server-sent events.
jobs.py has the job, drawing.py the mathematics, static/page.js the script of the page.
"""
