import type { Dice } from "../simulation/dice.ts";
import { type SeedPlace, type SeedTenant, seedTenants } from "../support/seed-tenants.ts";

/** A tenant as the load knows it. Operators replace its key now and then. */
export interface SoakTenant {
  readonly id: string;
  apiKey: string;
}

/** A few send most of it, most are quiet, as real tenants are. */
const GREEDY = 20;
const BUSY = 200;
/** Limited to ten requests a minute, which their owners ignore. */
const LIMITED = 10;
const WITH_TOKENS = 30;
const WITH_WEBHOOKS = 20;
export const TOKENS = 1_000_000;

export const TEMPLATE = "welcome";

export class Tenants {
  private constructor(readonly all: readonly SoakTenant[]) {}

  static async seed(place: SeedPlace, count: number): Promise<Tenants> {
    const wanted = Array.from(
      { length: Math.max(count, GREEDY + LIMITED + WITH_TOKENS) },
      (_, at): SeedTenant => ({
        id: `t${String(at).padStart(4, "0")}`,
        plan: at >= GREEDY && at < GREEDY + LIMITED ? "limited" : "load",
        channels: ["email", "whatsapp", "wallet"],
        // The greedy and the last tenants are quiet otherwise.
        tokens: at < WITH_TOKENS && (at < GREEDY || at >= GREEDY + LIMITED) ? TOKENS : 0,
        template: {
          slug: TEMPLATE,
          subject: "Hello, {{.name}}",
          html: "<p>Hello {{.name}}, this is {{.text}}</p>",
          text: null,
        },
      }),
    );
    const seeded = await seedTenants(place, wanted);
    return new Tenants(seeded.map(({ id, apiKey }) => ({ id, apiKey })));
  }

  /** Picks the sender of a message: mostly one of the greedy. */
  sender(dice: Dice): SoakTenant {
    const kind = dice.next();
    if (kind < 0.6) return dice.pick(this.greedy);
    return dice.pick(kind < 0.85 ? this.unlimited.slice(0, BUSY) : this.unlimited);
  }

  /** The tenants without limits. */
  private get unlimited(): readonly SoakTenant[] {
    return [...this.greedy, ...this.all.slice(GREEDY + LIMITED)];
  }

  get greedy(): readonly SoakTenant[] {
    return this.all.slice(0, GREEDY);
  }

  get limited(): readonly SoakTenant[] {
    return this.all.slice(GREEDY, GREEDY + LIMITED);
  }

  get withTokens(): readonly SoakTenant[] {
    return this.greedy;
  }

  /** Some greedy, some quiet. */
  get withWebhooks(): readonly SoakTenant[] {
    return this.all.filter((_, at) => at < WITH_WEBHOOKS / 2 || (at >= 100 && at < 100 + WITH_WEBHOOKS / 2));
  }
}
