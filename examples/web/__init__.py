"""Pictures of the Mandelbrot set: a request puts a job, a worker in the same process draws it, and
the browser sees it come into being.

    python -m examples.web                              # then open http://127.0.0.1:8000
    python -m examples.web --no-worker                  # with a worker elsewhere: python -m aioqless worker examples.web.jobs -q pictures

app.py is the place to begin: a worker in a lifespan, a job from a request, its progress as
server-sent events. jobs.py has the job.
drawing.py calculates and knows nothing of queues; static/page.js is all that browsers run.
"""
