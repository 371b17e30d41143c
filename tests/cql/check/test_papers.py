"""The papers' own queries, letter by letter, run or are refused with how to write them."""

import pytest

from millpond.catalog import Catalog
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_script, check_statement
from millpond.errors import CqlError, Position
from tests.cql.fixtures_format import Fixture, load

DECLARATIONS = """
CREATE STREAM PosSpeedStr (vehicleId INT, speed INT, xPos INT, dir INT, hwy INT);
CREATE RELATION VehicleRel (vehicleId INT, owner STRING);
CREATE VIEW SegSpeedStr AS SELECT vehicleId, speed, xPos / 1760 AS segNo, dir, hwy FROM PosSpeedStr;
CREATE VIEW ActiveVehicleSegRel AS RELATION
  SELECT DISTINCT vehicleId, segNo, dir, hwy FROM SegSpeedStr [RANGE 30 SECONDS];
CREATE VIEW VehicleSegEntryStr AS ISTREAM(SELECT * FROM ActiveVehicleSegRel);
CREATE VIEW CongestedSegRel AS
  SELECT segNo, dir, hwy, count(*) AS n FROM SegSpeedStr [RANGE 5 MINUTES] GROUP BY segNo, dir, hwy;
CREATE VIEW SegVolRel AS
  SELECT segNo, dir, hwy, count(*) AS numVehicles FROM ActiveVehicleSegRel GROUP BY segNo, dir, hwy;
CREATE STREAM Requests (client_id INT, domain STRING, URL STRING);
CREATE RELATION Domains (domain STRING, type STRING);
CREATE STREAM Bid (itemid INT, price DOUBLE, bidderId INT, bidTime TIMESTAMP) TIMESTAMP BY bidTime;
CREATE STREAM Auction (itemID INT, sellerID INT, categoryID INT, reserve DOUBLE, expires TIMESTAMP);
CREATE STREAM Person (id INT, name STRING, city STRING, state STRING);
"""
CATALOG = Catalog()
for _statement in check_script(DECLARATIONS, CATALOG):
    apply(_statement.action, CATALOG)


@pytest.mark.parametrize("fixture", load("papers"), ids=str)
def test_the_papers_queries_run_or_say_how(fixture: Fixture) -> None:
    if fixture.expected == "runs":
        check_statement(fixture.text, Position(1, 1), CATALOG)
        return
    with pytest.raises(CqlError) as refused:
        check_statement(fixture.text, Position(1, 1), CATALOG)
    assert refused.value.message.startswith(fixture.expected)
