"""How two logs find out what they lack of each other. Sans-I/O: values in, values out."""
