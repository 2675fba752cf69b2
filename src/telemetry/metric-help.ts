/** What each metric says, in one sentence for whoever reads `/metrics`. */
export const METRIC_HELP: ReadonlyMap<string, string> = new Map([
  ["deliveries", "Deliveries that ended, by channel and outcome; an outcome of retry is tried again."],
  ["delivery_seconds", "Time that a provider took for a delivery, in seconds."],
  ["shards_held", "Shards that this process holds for a role."],
  ["leases_lost", "Leases that were lost before their work was over."],
  ["lease_terms_failed", "Lease terms whose work ended with an error of ours."],
  ["lease_calls_failed", "Lease calls that got no answer or an error."],
  ["journal_calls_failed", "Journal calls that failed and were repeated, by call."],
  ["http_requests", "Requests that were answered, by route, method and status."],
  ["http_request_seconds", "Time from a request to its answer, in seconds."],
  ["ledger_rows_recorded", "Events that were copied into the ledger."],
  ["ledger_batches_recorded", "Batches that were copied into the ledger."],
  ["ledger_writes_failed", "Inserts into the ledger that failed and were repeated."],
  ["ledger_up", "Whether the ledger took the last insert: 1, or 0 while it is away."],
  ["recorder_lag_seconds", "Age of the oldest event that is not in the ledger yet, by shard."],
  ["delivery_reports", "What providers and the MTA said later, by type and whether it was new."],
  ["redis_restarts", "Times that the embedded Redis ended by itself and was started again."],
]);
