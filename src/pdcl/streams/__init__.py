"""Where tasks come from: splits of any data set, arrays, tables, texts, files, an embedded default."""
