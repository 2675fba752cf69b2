/**
 * Settings that a reader may choose: how results look, and how much of the machine a statement may use, within the bounds
 * of the analyst's profile. Not among them are those that name files (`format_schema`, `format_template_row`), other
 * profiles, or what the engine logs.
 */
export function isReadSetting(name: string): boolean {
  return READ_SETTINGS.has(name) || (/^(output_format|optimize)_[a-z0-9_]+$/.test(name) && !/schema|path/.test(name));
}

const READ_SETTINGS: ReadonlySet<string> = new Set([
  "aggregate_functions_null_for_empty",
  "any_join_distinct_right_table_keys",
  "bool_false_representation",
  "bool_true_representation",
  "cast_keep_nullable",
  "count_distinct_implementation",
  "date_time_input_format",
  "date_time_output_format",
  "extremes",
  "final",
  "format_csv_delimiter",
  "format_csv_null_representation",
  "format_tsv_null_representation",
  "group_by_overflow_mode",
  "group_by_use_nulls",
  "join_algorithm",
  "join_default_strictness",
  "join_use_nulls",
  "limit",
  "max_block_size",
  "max_bytes_to_read",
  "max_execution_time",
  "max_memory_usage",
  "max_result_rows",
  "max_rows_to_group_by",
  "max_rows_to_read",
  "max_threads",
  "offset",
  "prefer_column_name_to_alias",
  "read_overflow_mode",
  "result_overflow_mode",
  "session_timezone",
  "timeout_overflow_mode",
  "totals_mode",
  "transform_null_in",
  "union_default_mode",
  "use_skip_indexes",
  "validate_enum_literals_in_operators",
]);
