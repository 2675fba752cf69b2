/** A mistake that is planted into a source file, to see whether the simulation notices. */
export interface Canary {
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Notices it, and is tried first: chance moves that with every change of what a seed draws. Absent: one of the first. */
  readonly seed?: number;
}

const ACTORS = "src/actors";
const JOURNAL = "test/simulation/memory-journal";

/** One mistake each. Those in the journal are planted into its stand-in, which a model test holds to the real scripts. */
export const CANARIES: readonly Canary[] = [
  {
    name: "a delivery starts without a look at the lease",
    file: `${ACTORS}/shard-owner.ts`,
    find: "    if (this.term.isSurelyHeld()) return true;\n",
    replace: "    return true;\n",
  },
  {
    name: "a lease is counted from when its renewal was answered",
    file: "src/core/shard-keeper.ts",
    find: "term.extend(sentAtMs);",
    replace: "term.extend(clock.monotonicMs());",
  },
  {
    name: "a shard is handed over without lending what is in flight",
    file: `${ACTORS}/deliveries.ts`,
    find: '    for (const job of this.inFlight.keys()) this.settler.submit({ kind: "lend", job, forMs });\n',
    replace: "",
  },
  {
    name: "an answer is given up after one try to write it down",
    file: `${ACTORS}/settler.ts`,
    find: "await sleep(clock, waitMs, this.abandoned.signal);",
    replace: 'return "settled";',
  },
  {
    name: "a job is settled before its provider has answered",
    file: `${ACTORS}/deliveries.ts`,
    find: "const outcome = await deliver(this.ports, job, tenant, aborter);",
    replace:
      'const outcome: Outcome = { kind: "delivered", result: {} };\n    await Promise.race([deliver(this.ports, job, tenant, aborter), Promise.resolve()]);',
  },
  {
    name: "a suppressed message is put aside and forgotten",
    file: `${ACTORS}/tenant-actor.ts`,
    find: "if (job.suppressed !== null || job.isReported) {",
    replace: 'if (job.suppressed !== null && job.recipient !== "") continue;\n      if (job.isReported) {',
  },
  {
    name: "a pull does not say who is suppressed",
    file: `${JOURNAL}-pull.ts`,
    find: "const suppressed = shard.suppressed.get(mailbox.tenantId)?.get(entry.recipient) ?? null;",
    replace: "const suppressed = null;",
  },
  {
    name: "a box is read from its start although jobs of it are open",
    file: `${ACTORS}/tenant-actor.ts`,
    find: "const after = this.open > 0 ? this.lastRead : null;",
    replace: "const after = null;",
  },
  {
    name: "a settled job stays open",
    file: `${ACTORS}/tenant-actor.ts`,
    find: "    this.open -= 1;\n",
    replace: "",
  },
  {
    name: "the window of a tenant is not given back",
    file: `${ACTORS}/tenant-actor.ts`,
    find: "    this.delivering -= 1;\n",
    replace: "",
  },
  {
    name: "a slot is not given back",
    file: `${ACTORS}/tenant-actor.ts`,
    find: "      this.options.slots.prompt.release();\n",
    replace: "",
  },
  {
    name: "a tenant with nothing under way waits for those that have much",
    file: `${ACTORS}/fair-scheduler.ts`,
    find: "return inFlight === 0 || inFlight < 2 * (this.shared - this.used);",
    replace: "return inFlight < 2 * (this.shared - this.used);",
  },
  {
    name: "a tenant may fill all slots",
    file: `${ACTORS}/fair-scheduler.ts`,
    find: "return inFlight === 0 || inFlight < 2 * (this.shared - this.used);",
    replace: "return inFlight < this.slots;",
  },
  {
    name: "who may not take a slot keeps those behind from it",
    file: `${ACTORS}/fair-scheduler.ts`,
    find: 'if (end === "out of slots") return;',
    replace: 'if (end === "out of slots" || end === "not allowed") return;',
  },
  {
    name: "a pull whose answer got lost is forgotten",
    file: `${ACTORS}/shard-owner.ts`,
    find: "        surveyDueMs = begunMs;\n",
    replace: "        surveyDueMs = Number.POSITIVE_INFINITY;\n",
  },
  {
    name: "boxes with mail are named at the start alone",
    file: `${ACTORS}/shard-owner.ts`,
    find: "if (survey) surveyDueMs = begunMs + limits.surveyMs;",
    replace: "if (survey) surveyDueMs = Number.POSITIVE_INFINITY;",
  },
  {
    name: "boxes with mail are never named again",
    file: `${JOURNAL}-pull.ts`,
    find: "if (request.survey) for (const box of shard.held) shard.ready.add(box);",
    replace: "",
  },
  {
    name: "a retry is forgotten",
    file: `${JOURNAL}-settle.ts`,
    find: "  shard.later.set(jobId, timeMs + Math.ceil(delayMs));\n",
    replace: "",
  },
  {
    name: "an attempt is settled twice",
    file: `${JOURNAL}-settle.ts`,
    find: "return isFinal(stored.status) || numberOf(stored) > numberOf(settlement.job) ? null : stored;",
    replace: "return stored;",
  },
  {
    name: "a final status comes without its event",
    file: `${JOURNAL}-settle.ts`,
    find: "events: [...stored.events, written], result",
    replace: "events: stored.events, result",
  },
  {
    name: "an event is not put into the outbox",
    file: `${JOURNAL}-observe.ts`,
    find: "  publish(shard, rows, nowMs);",
    replace: "  if (nowMs % 2 === 0) publish(shard, rows, nowMs);",
  },
  {
    name: "an owner whose lease is over may still settle",
    file: `${JOURNAL}-state.ts`,
    find: 'if (!this.holds(lease, "dispatcher")) return FENCED;\n    settle(',
    replace: "settle(",
  },
  {
    name: "an owner whose lease is over may still pull",
    file: `${JOURNAL}-state.ts`,
    find: 'if (!this.holds(lease, "dispatcher")) return FENCED;\n    return pull(',
    replace: "return pull(",
  },
  {
    name: "a batch's end is not fixed before it is handed out",
    file: `${JOURNAL}-record.ts`,
    find: "const entries = shard.mark === null ? markNext(shard) : markedEntries(shard);",
    replace: "const entries = markNext(shard);",
  },
  {
    name: "the outbox is trimmed too far",
    file: `${JOURNAL}-record.ts`,
    find: "for (const id of shard.outbox.entries.keys()) if (!isBeyond(id, last)) shard.outbox.entries.delete(id);",
    replace: 'if (last !== "") shard.outbox.entries.clear();',
  },
  {
    name: "a batch is taken from the outbox before the ledger has it",
    file: "src/ledger/recorder.ts",
    find: "if (!(await this.write(batch))) break;\n        done = batch;",
    replace: "done = batch;\n        void this.write(batch);",
  },
  {
    name: "a batch that the ledger did not confirm is not repeated",
    file: "src/ledger/recorder.ts",
    find: "        this.noteLedgerFailure(error, batch, failures);\n",
    replace: "        this.noteLedgerFailure(error, batch, failures);\n        return true;\n",
  },
  {
    name: "a token is used for two batches",
    file: `${JOURNAL}-record.ts`,
    find: "`s${shardNumber}:${shard.mark.first}/${shard.mark.last}`",
    replace: "`s${shardNumber}:${shard.mark.first.slice(0, -4)}`",
  },
  {
    name: "the event clock follows the wall clock back",
    file: `${JOURNAL}-shard.ts`,
    find: "shard.lastEventId = nextEventId(shard.lastEventId, nowMs);",
    replace: "shard.lastEventId = nextEventId(0, nowMs);",
  },
  {
    name: "a report is given up when the journal does not answer",
    file: "src/intake/delivery-reports.ts",
    find: 'if (this.stopping.signal.aborted) return "given up";',
    replace: 'if (this.stopping.signal.aborted || waitMs > 10) return "given up";',
  },
  {
    name: "a report on an unfinished job is answered for and forgotten",
    file: `${JOURNAL}-observe.ts`,
    find: "kept: [...job.kept, { type, result: observation.result }]",
    replace: "kept: job.kept",
  },
  {
    name: "a report that waits is told again although its event is there",
    file: `${JOURNAL}-settle.ts`,
    find: "    if (hasEvent(record, report)) continue;\n",
    replace: "",
  },
  {
    name: "a job that its provider has reported stays parked for another try",
    file: `${JOURNAL}-observe.ts`,
    find: "    shard.parked.delete(jobId);\n    shard.later.delete(jobId);\n",
    replace: "",
  },
  {
    name: "a job that its provider has reported is parked for another try",
    file: `${JOURNAL}-settle.ts`,
    find: "    if (isReported) return end(shard, settling, SENT);\n",
    replace: "",
  },
  {
    name: "a pull does not say which job its provider has reported",
    file: `${JOURNAL}-pull.ts`,
    find: "    if (isReported) return",
    replace: "    if (isReported && entryId === null) return",
  },
  {
    name: "a job that its provider has reported is handed over all the same",
    file: `${ACTORS}/deliveries.ts`,
    find: '    if (job.isReported) return this.submit(retryNow(job, "running"));\n',
    replace: "",
  },
  {
    name: "a wait that costs no attempt costs one",
    file: `${JOURNAL}-settle.ts`,
    find: "return isWait ? { attempts, waits: waits + 1 } :",
    replace: "return isWait ? { attempts: attempts + 1, waits } :",
  },
  {
    name: "a repeated accept queues its job again",
    file: `${JOURNAL}-accept.ts`,
    find: "  if (shard.jobs.has(job.jobId)) return {",
    replace: "  if (shard.jobs.has(job.jobId) && nowMs < 0) return {",
  },
  {
    name: "a delivery that hangs is waited for for ever",
    file: `${ACTORS}/deliver.ts`,
    find: "this.deadline = clock.setTimer(limits.deliveryTimeoutMs, () => {",
    replace: "this.deadline = clock.setTimer(1e12, () => {",
  },
  {
    name: "a stop does not give the leases back",
    file: "src/core/shard-keeper.ts",
    find: "} else await this.release(term);",
    replace: "}",
  },
  {
    name: "a lease that is in doubt is taken for lost",
    file: `${ACTORS}/shard-owner.ts`,
    find: "    const isHeld = await this.term.whenSurelyHeld();\n",
    replace: "    const isHeld = false;\n    this.lose();\n    await Promise.resolve();\n",
  },
  {
    name: "a lease is taken over after a third of its length",
    file: "src/core/signs-of-life.ts",
    find: "sign.seenAtMs - sign.sinceMs >= limits.leaseTtlMs;",
    replace: "sign.seenAtMs - sign.sinceMs >= limits.leaseTtlMs / 3;",
  },
  {
    name: "a silence of the journal counts against all owners",
    file: "src/core/signs-of-life.ts",
    find: "nowMs - sign.seenAtMs > LOOK_GAP_MS_MAX || ",
    replace: "",
  },
  {
    name: "what is lent comes back while its delivery goes on",
    file: `${ACTORS}/deliveries.ts`,
    find: 'this.settler.submit({ kind: "lend", job, forMs });',
    replace: 'this.settler.submit({ kind: "lend", job, forMs: 1_000 });',
  },
  {
    name: "what became of a lent job is not written down",
    file: `${ACTORS}/deliveries.ts`,
    find: "        await journal.settleLent(lease, settlements, shardTimeMs());\n",
    replace: "",
  },
  {
    name: "a shard is handed over when its slowest delivery has ended",
    file: `${ACTORS}/shard-owner.ts`,
    find: "    else await this.deliveries.lend(this.ports.lendMs());\n",
    replace: "    else await this.deliveries.over();\n",
  },
  {
    name: "a pull is not bounded by bytes",
    file: `${JOURNAL}-pull.ts`,
    find: "if (call.entries > 0 && call.bytes + bytes > call.bytesMax) break;",
    replace: "",
  },
  {
    name: "a tenant may fill the memory of a process",
    file: `${ACTORS}/backlog.ts`,
    find: "return Math.min(TENANT_BYTES_MAX, (limits.backlogBytesMax - this.held) / 4) - own;",
    replace: "return 1e9 - own;",
  },
  {
    name: "a relay that is not prompt takes the slots of those that are",
    file: `${ACTORS}/tenant-actor.ts`,
    find: "return this.lane === null || this.lane.isPrompt ? slots.prompt : this.lane;",
    replace: "return slots.prompt;",
  },
  {
    name: "an outage of a relay costs an attempt",
    file: `${ACTORS}/deliveries.ts`,
    find: 'if (place === "hold") return starter.hold(job, slot?.kind === "probe");',
    replace: 'if (place === "hold") return this.settle(job, { kind: "retry", why });',
  },
  {
    name: "a message is given up as soon as its relay is away",
    file: `${ACTORS}/tenant-actor.ts`,
    find: "    if (clock.nowMs() < this.heldUntilMs || clock.monotonicMs() - lane.awaySinceMs < outageMsMin(holdMs)) return;\n    const spent = this.waiting.filter((job) => clock.nowMs() >= heldUntilMs(job, holdMs));",
    replace: "    const spent = [...this.waiting];",
  },
  {
    name: "a job that has ended counts against its tenant",
    file: `${JOURNAL}-settle.ts`,
    find: "if (shard.jobs.has(jobId)) count(",
    replace: "if (shard.jobs.has(jobId) && nowMs < 0) count(",
  },
  {
    name: "nobody looks at a tenant's quota",
    file: `${JOURNAL}-accept.ts`,
    find: '  if (jobs + 1 > job.quota.jobs) return "jobs";\n',
    replace: "",
  },
  {
    name: "a step of the journal's clock moves what is due",
    file: `${JOURNAL}-pull.ts`,
    find: "const isNear = reckonedMs !== null && Math.abs(timeMs - reckoned) <= limits.shardTimeSlackMs;",
    replace: "const isNear = reckonedMs !== null;",
  },
  {
    name: "what has ended stays in the journal",
    file: `${JOURNAL}-record.ts`,
    find: "if (isFinal(job.status) && isRecorded) shard.jobs.delete(jobId);",
    replace: "if (isFinal(job.status) && isRecorded && timeMs < 0) shard.jobs.delete(jobId);",
  },
];
