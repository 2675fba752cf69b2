import type { Clock } from "../../../domain/clock.ts";
import { RecentFailures, toNetwork } from "../../../http/operator-gate.ts";
import { submissionLimits } from "./limits.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

const { connectionsMax, connectionsPerTenantMax, strangersPerAddressMax, wrongKeysMax } = submissionLimits;
const { loginMs, dataMs, commandsMax } = submissionLimits;

interface Connection {
  readonly id: string;
  /** The network that it comes from. */
  readonly from: string;
  readonly sinceMs: number;
  /** Null until it logs in. */
  tenantId: string | null;
  wrongKeys: number;
  /** Commands since the last message. */
  commands: number;
  /** Start of the message in transfer; null if there is none. */
  dataSinceMs: number | null;
}

const MINUTE_MS = 60_000;
/** Wrong keys that an address may try a minute, as for operators' tokens. */
const WRONG_KEYS_A_MINUTE = 10;
const ADDRESSES_MAX = 10_000;

/**
 * Open connections and their limits.
 *
 * Invariants:
 * C1. At most `connectionsMax` are open. A newcomer replaces the oldest stranger, so unauthenticated connections cannot
 *     keep tenants out.
 * C2. Strangers count by their address, tenants' connections by the tenant: tenants behind one address do not share a
 *     bound. If an address has reached its limit of strangers, a newcomer from there replaces the oldest of them:
 *     behind a balancer that passes TCP through, all clients have one address.
 * C3. A valid key is always accepted, however many wrong ones came from its address.
 */
export class Connections {
  private readonly open = new Map<string, Connection>();
  private readonly wrong = new RecentFailures({
    windowMs: MINUTE_MS,
    failuresMax: WRONG_KEYS_A_MINUTE,
    callersMax: ADDRESSES_MAX,
  });

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.open.size;
  }

  /** Admits a connection. Returns the id of the stranger to close for it, or null. Throws an `SmtpRefusal`. */
  enter(id: string, address: string): string | null {
    const from = toNetwork(address);
    const strangers = [...this.open.values()].filter(({ tenantId }) => tenantId === null);
    const neighbours = strangers.filter((one) => one.from === from);
    const isFull = this.open.size >= connectionsMax;
    const [oldest] = neighbours.length >= strangersPerAddressMax ? neighbours : isFull ? strangers : [];
    if (isFull && oldest === undefined) throw tooMany("connections are open");
    if (oldest !== undefined) this.open.delete(oldest.id);
    const sinceMs = this.clock.monotonicMs();
    const fresh = { tenantId: null, wrongKeys: 0, commands: 0, dataSinceMs: null };
    this.open.set(id, { id, from, sinceMs, ...fresh });
    return oldest?.id ?? null;
  }

  leave(id: string): void {
    this.open.delete(id);
  }

  /** Throws an `SmtpRefusal`. */
  logIn(id: string, tenantId: string): void {
    const same = [...this.open.values()].filter((one) => one.tenantId === tenantId).length;
    if (same >= connectionsPerTenantMax) throw tooMany("connections of yours are open");
    const connection = this.open.get(id);
    if (connection !== undefined) connection.tenantId = tenantId;
  }

  /** Counts a wrong key and returns its refusal. */
  refuseKey(id: string, address: string): SmtpRefusal {
    const nowMs = this.clock.monotonicMs();
    const from = toNetwork(address);
    const isSlowed = this.wrong.waitMs(from, nowMs) > 0;
    if (!isSlowed) this.wrong.add(from, nowMs);
    const connection = this.open.get(id);
    const tries = connection === undefined ? wrongKeysMax : ++connection.wrongKeys;
    if (isSlowed || tries >= wrongKeysMax) return tooMany("wrong keys came from your address");
    return new SmtpRefusal(535, "5.7.8 the password is not an API key");
  }

  /** Counts a command. Returns whether there were too many since the last message. */
  isFlood(id: string): boolean {
    const connection = this.open.get(id);
    if (connection === undefined) return false;
    connection.commands += 1;
    return connection.commands > commandsMax;
  }

  beginData(id: string): void {
    const connection = this.open.get(id);
    if (connection !== undefined) connection.dataSinceMs = this.clock.monotonicMs();
  }

  /** Whether a message is in transfer. */
  hasMessage(id: string): boolean {
    const { dataSinceMs = null } = this.open.get(id) ?? {};
    return dataSinceMs !== null;
  }

  /** Records that the message was answered, or its client disconnected. */
  endData(id: string): void {
    const connection = this.open.get(id);
    if (connection !== undefined) Object.assign(connection, { dataSinceMs: null, commands: 0 });
  }

  /** Lists connections that did not log in in time, or whose message takes too long. */
  late(): readonly string[] {
    const nowMs = this.clock.monotonicMs();
    return [...this.open.values()].filter((one) => isLate(one, nowMs)).map(({ id }) => id);
  }
}

function isLate({ tenantId, sinceMs, dataSinceMs }: Connection, nowMs: number): boolean {
  if (tenantId === null) return nowMs - sinceMs > loginMs;
  return dataSinceMs !== null && nowMs - dataSinceMs > dataMs;
}

function tooMany(what: string): SmtpRefusal {
  return new SmtpRefusal(421, `4.7.0 too many ${what}: try again later`);
}
