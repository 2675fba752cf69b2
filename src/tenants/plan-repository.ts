import { asc, count, eq, isNull } from "drizzle-orm";
import { type Done, done, type Invalid, invalid } from "../domain/store-result.ts";
import type { Plan } from "../domain/tenants/tenant.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { plans, tenants } from "../storage/tables.ts";
import { planLimits } from "./limits.ts";
import type { NoSuchPlan } from "./registry.ts";

const PLAN_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const { requestsPerMinuteMax: REQUESTS_PER_MINUTE_MAX, deliveriesPerSecondMax: DELIVERIES_PER_SECOND_MAX } = planLimits;

export class PlanRepository {
  constructor(
    private readonly database: Database,
    private readonly changes: RegistryChanges,
  ) {}

  all(): Promise<readonly Plan[]> {
    return this.database.read((db) => db.select().from(plans).orderBy(asc(plans.name)));
  }

  /** The number of tenants of each plan; a plan without tenants is absent. */
  async use(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.database.read((db) =>
      db
        .select({ plan: tenants.plan, tenants: count() })
        .from(tenants)
        .where(isNull(tenants.deletedAt))
        .groupBy(tenants.plan),
    );
    return new Map(rows.map((row) => [row.plan, Number(row.tenants)]));
  }

  async put(plan: Plan): Promise<Done<Plan> | Invalid> {
    const fault = findFault(plan);
    if (fault !== null) return invalid(fault);
    const { name, requestsPerMinute, deliveriesPerSecond, queuedJobsMax, queuedBytesMax, holdMs } = plan;
    const row = { name, requestsPerMinute, deliveriesPerSecond, queuedJobsMax, queuedBytesMax, holdMs };
    await this.changes.ofPlans((transaction) =>
      transaction.insert(plans).values(row).onConflictDoUpdate({ target: plans.name, set: row }),
    );
    return done(row);
  }
}

/** Returns an error if there is no plan of this name, otherwise null. */
export async function missingPlan(db: AnyDb, name: string): Promise<NoSuchPlan | null> {
  const isName = PLAN_NAME.test(name);
  const found = isName ? await db.select({ name: plans.name }).from(plans).where(eq(plans.name, name)) : [];
  return found.length === 0 ? { kind: "no_such_plan", plan: name } : null;
}

const HOUR_MS = 60 * 60 * 1000;

function findFault(plan: Plan): string | null {
  const { name, requestsPerMinute, deliveriesPerSecond, queuedJobsMax, queuedBytesMax, holdMs } = plan;
  if (!PLAN_NAME.test(name)) {
    return "A plan's name must be 1-63 lower-case letters, digits, hyphens or underscores.";
  }
  const rate = notWhole("requests_per_minute", requestsPerMinute, REQUESTS_PER_MINUTE_MAX);
  if (rate !== null) return rate;
  if (deliveriesPerSecond !== null && !(deliveriesPerSecond > 0 && deliveriesPerSecond <= DELIVERIES_PER_SECOND_MAX)) {
    return `The field "deliveries_per_second" must be above 0 and at most ${DELIVERIES_PER_SECOND_MAX}.`;
  }
  return (
    notWhole("queued_jobs_max", queuedJobsMax, planLimits.queuedJobsMax) ??
    notWhole("queued_bytes_max", queuedBytesMax, planLimits.queuedBytesMax) ??
    notWhole("hold_hours", holdMs / HOUR_MS, planLimits.holdHoursMax)
  );
}

function notWhole(field: string, value: number, max: number): string | null {
  if (Number.isInteger(value) && value >= 1 && value <= max) return null;
  return `The field "${field}" must be an integer from 1 to ${max}.`;
}
