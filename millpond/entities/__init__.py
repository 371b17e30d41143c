"""Entities and their control tables (STREAM paper, section 6.1): everything that runs, by name.

An attribute is declared once, in the file of its kind. The Python API, HTTP, the command line, XML,
the metrics and the web page show whatever is declared here.
"""

from millpond.entities.attributes import Attribute, knob, statistic
from millpond.entities.control_tables import Entities, Entity, Kind

__all__ = ["Attribute", "Entities", "Entity", "Kind", "knob", "statistic"]
