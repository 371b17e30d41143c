"""NEXMark: an auction site's persons, auctions and bids, the queries over them, and what DuckDB
answers to the same questions."""
