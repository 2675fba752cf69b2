import { parseSmtpUrl } from "../../../domain/channels/smtp-url.ts";
import type { OutboundGuard } from "../../../domain/texts/outbound.ts";
import { RelayPool } from "./relay-pool.ts";
import { RelayRoute } from "./relay-route.ts";
import type { SmtpFailure } from "./smtp-replies.ts";
import type { SmtpTimeouts } from "./smtp-session.ts";

export interface SmtpPoolsOptions {
  /** Connections to one server. */
  readonly connectionsMax: number;
  /** Most servers in use at one time. */
  readonly poolsMax: number;
  readonly timeouts: SmtpTimeouts;
  /** The name with which servers are greeted. */
  readonly ehloName: string;
  /** Called when a server's encryption changes from the usual one. `relay`: its host and port. */
  readonly onSwap?: (relay: string, failure: SmtpFailure) => void;
}

/** A mail server's URL, and the guard of its connections. */
export interface MailServer {
  readonly smtpUrl: string;
  /** Decides which addresses may be connected to. Null: any, because it is the platform's own server. */
  readonly guard: OutboundGuard | null;
}

/** Connections to a server that has not taken any message yet. */
const UNPROVEN_MAX = 8;
/** Connections to all servers together; beyond this, idle ones are closed. */
const ALL_CONNECTIONS_MAX = 2_048;

/**
 * One pool of connections per mail server, created on first use.
 *
 * Invariants:
 * P1. There are never more than `poolsMax` pools. The least recently used idle pool is closed for a new one.
 * P2. Only `close` ends a pool with messages in flight.
 * P3. After `close`, no message is sent.
 * P4. Beyond `ALL_CONNECTIONS_MAX`, no idle connection is kept.
 * P5. The guard decides where to connect for a tenant's server, even if its URL is the platform's: the two share no
 *     pool.
 */
export class SmtpPools {
  private readonly pools = new Map<string, RelayPool>();
  private connections = 0;
  private closed = false;

  constructor(private readonly options: SmtpPoolsOptions) {}

  /** Connections open or being opened. */
  get size(): number {
    return this.connections;
  }

  /** Returns the pool for the server; null if its URL is invalid, all pools are busy, or they are closed. */
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

  /** Ends every connection. Messages in flight fail as cancelled. Safe to call twice. */
  close(): void {
    this.closed = true;
    for (const pool of this.pools.values()) pool.close();
    this.pools.clear();
  }

  private open({ smtpUrl, guard }: MailServer): RelayPool | null {
    const server = parseSmtpUrl(smtpUrl);
    if (server === null || (this.pools.size >= this.options.poolsMax && !this.makeRoom())) return null;
    const { connectionsMax, timeouts, ehloName, onSwap } = this.options;
    return new RelayPool({
      server,
      route: new RelayRoute(server.host, guard, timeouts.connectMs),
      timeouts,
      ehloName,
      connectionsMax,
      unprovenMax: guard === null ? connectionsMax : UNPROVEN_MAX,
      onOpen: () => this.opened(),
      onSwap: (failure) => onSwap?.(`${server.host}:${server.port}`, failure),
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
