import { asc, eq } from "drizzle-orm";
import { ApiError } from "../domain/errors.ts";
import type { Plan } from "../domain/tenant.ts";
import { type AnyDb, type Database } from "../storage/database.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { plans } from "../storage/tables.ts";
import { planLimits } from "./limits.ts";

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

  async put(plan: Plan): Promise<Plan> {
    checkPlan(plan);
    const { name, requestsPerMinute, deliveriesPerSecond, queuedJobsMax, queuedBytesMax, holdMs } = plan;
    const row = { name, requestsPerMinute, deliveriesPerSecond, queuedJobsMax, queuedBytesMax, holdMs };
    await this.changes.ofPlans((transaction) =>
      transaction.insert(plans).values(row).onConflictDoUpdate({ target: plans.name, set: row }),
    );
    return row;
  }
}

/** @throws ApiError 400 if there is no plan of this name. */
export async function requirePlan(db: AnyDb, name: string): Promise<void> {
  const isName = PLAN_NAME.test(name);
  const found = isName ? await db.select({ name: plans.name }).from(plans).where(eq(plans.name, name)) : [];
  if (found.length === 0) throw new ApiError(400, `There is no plan ${JSON.stringify(name.slice(0, 63))}.`);
}

function checkPlan(plan: Plan): void {
  const { name, requestsPerMinute, deliveriesPerSecond } = plan;
  if (!PLAN_NAME.test(name)) {
    throw new ApiError(400, "A plan's name must be 1-63 lower-case letters, digits, hyphens or underscores.");
  }
  if (!Number.isInteger(requestsPerMinute) || requestsPerMinute < 1 || requestsPerMinute > REQUESTS_PER_MINUTE_MAX) {
    throw new ApiError(400, `The field "requests_per_minute" must be an integer from 1 to ${REQUESTS_PER_MINUTE_MAX}.`);
  }
  if (deliveriesPerSecond !== null && !(deliveriesPerSecond > 0 && deliveriesPerSecond <= DELIVERIES_PER_SECOND_MAX)) {
    throw new ApiError(
      400,
      `The field "deliveries_per_second" must be above 0 and at most ${DELIVERIES_PER_SECOND_MAX}.`,
    );
  }
  checkShare(plan);
}

function checkShare({ queuedJobsMax, queuedBytesMax, holdMs }: Plan): void {
  const { queuedJobsMax: jobsMax, queuedBytesMax: bytesMax, holdHoursMax } = planLimits;
  requireWhole("queued_jobs_max", queuedJobsMax, jobsMax);
  requireWhole("queued_bytes_max", queuedBytesMax, bytesMax);
  requireWhole("hold_hours", holdMs / HOUR_MS, holdHoursMax);
}

const HOUR_MS = 60 * 60 * 1000;

function requireWhole(field: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new ApiError(400, `The field "${field}" must be an integer from 1 to ${max}.`);
}
