import type { OutboundGuard } from "../../domain/outbound.ts";
import { parseSmtpUrl } from "../../domain/smtp-url.ts";
import { RelayPool } from "./relay-pool.ts";
import { RelayRoute } from "./relay-route.ts";
import type { SmtpTimeouts } from "./smtp-session.ts";

export interface SmtpPoolsOptions {
  /** Connections to one server. */
  readonly connectionsMax: number;
  /** Servers that are talked to at one time. */
  readonly poolsMax: number;
  readonly timeouts: SmtpTimeouts;
}

/** A mail server by its URL, and whether it was a tenant who named it. */
export interface MailServer {
  readonly smtpUrl: string;
  /** Says where it may be connected to. Null: anywhere, it is the platform's own. */
  readonly guard: OutboundGuard | null;
}

/** Connections to a server that has taken no message yet. */
const UNPROVEN_MAX = 8;
/** Connections to all servers together; above it unused ones are closed. */
const ALL_CONNECTIONS_MAX = 2_048;

/**
 * One pool of connections a mail server, made when it is first used.
 *
 * Invariants:
 * P1. There are never more than `poolsMax` pools. Room is made by the least recently used one that has nothing to send.
 * P2. A pool that has messages under way is ended by `close` alone.
 * P3. After `close` nothing is sent.
 * P4. Beyond `ALL_CONNECTIONS_MAX` no connection is kept that nobody uses.
 * P5. A tenant's server is connected to where the guard says, also where its URL is the platform's: the two share nothing.
 */
export class SmtpPools {
  private readonly pools = new Map<string, RelayPool>();
  private connections = 0;
  private closed = false;

  constructor(private readonly options: SmtpPoolsOptions) {}

  /** Connections that are open or being opened. */
  get size(): number {
    return this.connections;
  }

  /** What sends through the server, or null: its URL is none, all pools are busy, or they are closed. */
  at(server: MailServer): RelayPool | null {
    if (this.closed) return null;
    const key = `${server.guard === null ? "platform" : "tenant"} ${server.smtpUrl}`;
    const pool = this.pools.get(key) ?? this.open(server);
    if (pool === null) return null;
    // Put back at the end: the first key is the least recently used.
    this.pools.delete(key);
    this.pools.set(key, pool);
    return pool;
  }

  /** Ends every connection. Messages under way fail as called off. Safe to repeat. */
  close(): void {
    this.closed = true;
    for (const pool of this.pools.values()) pool.close();
    this.pools.clear();
  }

  private open({ smtpUrl, guard }: MailServer): RelayPool | null {
    const server = parseSmtpUrl(smtpUrl);
    if (server === null || (this.pools.size >= this.options.poolsMax && !this.makeRoom())) return null;
    const { connectionsMax, timeouts } = this.options;
    return new RelayPool({
      server,
      route: new RelayRoute(server.host, guard, timeouts.connectMs),
      timeouts,
      connectionsMax,
      unprovenMax: guard === null ? connectionsMax : UNPROVEN_MAX,
      onOpen: () => this.opened(),
      onEnd: () => {
        this.connections -= 1;
      },
    });
  }

  private makeRoom(): boolean {
    for (const [key, pool] of this.pools) {
      if (pool.isBusy) continue;
      pool.close();
      this.pools.delete(key);
      return true;
    }
    return false;
  }

  private opened(): void {
    this.connections += 1;
    if (this.connections <= ALL_CONNECTIONS_MAX) return;
    for (const pool of this.pools.values()) if (pool.shed()) return;
  }
}
