"""python -m aioqless"""

from aioqless.cli import main

main()
