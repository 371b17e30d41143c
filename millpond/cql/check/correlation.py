"""Where a subquery may name columns of the queries around it, and what is said where not."""

ONLY_IN_WHERE = (
    "a column of the enclosing query can only be used in a subquery's WHERE: "
    "(SELECT max(x) FROM R WHERE R.k > S.a); the query around it computes with the result"
)
NOT_IN_SET_OPERATIONS = (
    "a column of the enclosing query cannot be used inside UNION, EXCEPT or INTERSECT"
)
NOT_IN_SEVERAL_SETS = (
    "a column of the enclosing query cannot be used in a SELECT with several grouping sets; have "
    "the sets in a subquery in FROM, with the column that is compared as a key"
)
