import type { Relay } from "../../src/domain/channels/channel.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import type { Dice } from "./dice.ts";
import type { SimClock } from "./sim-clock.ts";

/**
 * `hangs`: accepts the connection and stays silent until it is broken off. `silent`: is given up by its caller after a
 * while. `away`: refuses at once. `slow`: takes the message, after many seconds. `prompt`: all is well.
 */
export type RelayState = "prompt" | "slow" | "hangs" | "silent" | "away";

export const TROUBLES: readonly RelayState[] = ["slow", "hangs", "silent", "away"];

interface Trouble {
  readonly state: RelayState;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The relays that tenants hand their messages to, and which of them are in trouble. */
export class Relays {
  private readonly troubles = new Map<string, Trouble>();

  constructor(
    private readonly clock: SimClock,
    private readonly dice: Dice,
    /** By tenant; all others use the platform's. */
    private readonly own: ReadonlyMap<string, string>,
    /** Relays that never get into trouble. */
    private readonly sound: ReadonlySet<string>,
  ) {}

  findRelay({ tenantId }: Pick<Tenant, "tenantId">): Relay {
    const key = this.own.get(tenantId) ?? PLATFORM;
    return { key, name: `${key}.example.com:587`, isOwn: key !== PLATFORM };
  }

  getState(tenant: Pick<Tenant, "tenantId">): RelayState {
    const trouble = this.troubles.get(this.findRelay(tenant).key);
    return trouble === undefined || trouble.untilMs <= this.clock.nowMs ? "prompt" : trouble.state;
  }

  /** Since when the tenant's relay has refused everything without a break; null: it does not. */
  awaySinceMs(tenant: Pick<Tenant, "tenantId">): number | null {
    if (this.getState(tenant) !== "away") return null;
    return this.troubles.get(this.findRelay(tenant).key)?.sinceMs ?? null;
  }

  trouble(key: string, state: RelayState, forMs: number): void {
    const known = this.troubles.get(key);
    const { nowMs } = this.clock;
    const goesOn = known !== undefined && known.state === state && known.untilMs >= nowMs;
    this.troubles.set(key, { state, sinceMs: goesOn ? known.sinceMs : nowMs, untilMs: nowMs + forMs });
  }

  /** Some relay that can get into trouble does. */
  troubleOne(forMs: number): void {
    const keys = [...new Set([PLATFORM, ...this.own.values()])].filter((key) => !this.sound.has(key));
    const state = this.dice.pick(TROUBLES);
    if (keys.length > 0) this.trouble(this.dice.pick(keys), state, forMs);
  }

  heal(): void {
    this.troubles.clear();
  }
}

export const PLATFORM = "platform";
