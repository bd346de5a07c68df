"""Cases in which the matches of a query are computed from those of another, one file each."""
