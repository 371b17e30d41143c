"""What must agree in an engine at every moment at which its lock is free.

One small function says it of each thing, and yields a complaint for each place where it is not so.
They look into what others keep to themselves, count it anew, and change nothing.
"""
