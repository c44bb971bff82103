"""Records: their kinds and fields, strict bytes, ids, seals and admission. Pure: no clock, disk or socket."""
