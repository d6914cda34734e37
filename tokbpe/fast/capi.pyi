_table: object
