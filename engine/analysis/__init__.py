"""Raw log directories as tables: columns, splits, export, SQL."""
