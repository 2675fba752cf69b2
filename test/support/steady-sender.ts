import { type LatencySummary, summarise } from "../../bench/load/latency.ts";
import type { LoadTenant } from "./load.ts";
import type { ScriptedRelay } from "./scripted-relay.ts";
import type { Waybill } from "./waybill.ts";

export interface SteadyLoad {
  /** Part of the recipients' addresses: unique to each sender. */
  readonly name: string;
  /** Requests rotate through them. */
  readonly tenants: readonly LoadTenant[];
  readonly perSecond: number;
  readonly seconds: number;
  /** How long to wait for the last hand-over after the last request. */
  readonly patienceMs: number;
}

export interface SteadyResult {
  readonly asked: number;
  readonly accepted: number;
  /** Accepted, but not handed over within the patience. */
  readonly missing: number;
  /** From the time the request was due to its answer. */
  readonly acceptMs: LatencySummary;
  /**
   * From the time the request was due until the relay had the message. A missing message counts with its whole wait so
   * far.
   */
  readonly handOverMs: LatencySummary;
  readonly jobIds: readonly string[];
}

/**
 * A tenant that sends at a fixed rate, however long answers take (an open loop), and the time that each of its messages
 * took to reach the relay. It is the unconcerned neighbour whose wait the promises limit.
 */
export class SteadySender {
  private readonly dueMs: number[] = [];
  private readonly acceptMs: number[] = [];
  private readonly accepted = new Map<number, string>();
  private readonly requests: Promise<void>[] = [];
  private stopped = false;

  constructor(
    private readonly waybill: Pick<Waybill, "request">,
    private readonly relay: ScriptedRelay,
    private readonly load: SteadyLoad,
  ) {}

  /** Sends only what is already due. */
  stop(): void {
    this.stopped = true;
  }

  async run(): Promise<SteadyResult> {
    const { perSecond, seconds, patienceMs } = this.load;
    const startedMs = performance.now();
    const count = Math.ceil(perSecond * seconds);
    for (let index = 0; index < count && !this.stopped; index += 1) {
      const dueMs = startedMs + (index * 1000) / perSecond;
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await Bun.sleep(waitMs);
      this.dueMs.push(dueMs);
      this.requests.push(this.send(index, dueMs));
    }
    const giveUpAtMs = performance.now() + patienceMs;
    await Promise.race([Promise.all(this.requests), Bun.sleep(patienceMs)]);
    while (performance.now() < giveUpAtMs && this.missing() > 0) await Bun.sleep(10);
    return this.result();
  }

  private async send(index: number, dueMs: number): Promise<void> {
    const { tenants } = this.load;
    const tenant = tenants[index % tenants.length];
    if (tenant === undefined) throw new Error("a sender needs a tenant");
    const body = { to_address: this.recipient(index), subject: "Hello", html: "<p>Hello</p>" };
    try {
      const answer = await this.waybill.request(tenant.apiKey, "POST", "/v1/send/email", body);
      if (answer.status === 202) this.accepted.set(index, answer.body.job_id);
    } catch {
      // Without an answer it is not accepted. The wait counts all the same.
    }
    this.acceptMs.push(performance.now() - dueMs);
  }

  private recipient(index: number): string {
    return `${this.load.name}-${index}@example.com`;
  }

  private missing(): number {
    let missing = 0;
    for (const index of this.accepted.keys()) if (!this.relay.firstTaken.has(this.recipient(index))) missing += 1;
    return missing;
  }

  private result(): SteadyResult {
    const nowMs = performance.now();
    const waits = this.dueMs.map((dueMs, index) => (this.relay.firstTaken.get(this.recipient(index)) ?? nowMs) - dueMs);
    // A request without an answer has waited until now.
    const answers = [...this.acceptMs, ...this.dueMs.slice(this.acceptMs.length).map((dueMs) => nowMs - dueMs)];
    return {
      asked: this.dueMs.length,
      accepted: this.accepted.size,
      missing: this.missing(),
      acceptMs: summarise(answers),
      handOverMs: summarise(waits),
      jobIds: [...this.accepted.values()],
    };
  }
}

export function sendSteadily(
  waybill: Pick<Waybill, "request">,
  relay: ScriptedRelay,
  load: SteadyLoad,
): Promise<SteadyResult> {
  return new SteadySender(waybill, relay, load).run();
}
