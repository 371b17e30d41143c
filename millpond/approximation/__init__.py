"""How wrong an answer can be that was not made of all rows, and how to be the least wrong.

Intervals around answers (`intervals`), which rows are kept (`sampling`), small stand-ins for what
operators remember (`synopses`), how errors go through a plan (`precision`), and who gets the memory
(`allocation`). Made of numpy alone; no operator of the engine calls it yet. `docs/precision.md`
proves what is claimed here.
"""
