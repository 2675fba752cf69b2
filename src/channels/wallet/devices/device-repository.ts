import { and, asc, eq, gt, inArray, isNotNull, isNull, lte, ne, notExists, or, type SQL, sql } from "drizzle-orm";
import type { Clock } from "../../../domain/clock.ts";
import { among } from "../../../storage/analysts/statement-texts.ts";
import type { AnyDb, Database } from "../../../storage/postgres/database.ts";
import { walletLimits } from "../limits.ts";
import type { PassDevices, PushTarget, Registration } from "../passes.ts";
import { passDevices, passes, passRegistrations, passTypes } from "../tables.ts";

/** A registration that is repeated sooner is not written. */
const RENEWED_AFTER_MS = 60_000;

/**
 * Devices and the passes on them.
 *
 * Invariants:
 * D1. Every registration belongs to a device row of its pass type. Every change locks the device's row first, then its
 *     registrations, so concurrent changes run one after the other, each seeing the one before.
 * D2. A device has one push token per pass type and tenant: the latest that it sent with one of that tenant's passes.
 *     The holder of a pass's token, and the tenant itself, can set the device's push token for that tenant only, even
 *     if tenants share a pass type.
 * D3. Changes are read in one statement, so a tag is returned together with every change before it.
 * D4. A call without effect only reads: a pass holder can repeat a call as often as they like.
 */
export class DeviceRepository implements PassDevices {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async register(registration: Registration): Promise<"created" | "known" | "full"> {
    if (await this.isAsGiven(registration)) return "known";
    try {
      return await this.store(registration);
    } catch (error) {
      if (error instanceof PassFull) return "full";
      throw error;
    }
  }

  /**
   * Whether the registration is already stored. By D2, the tenant's other passes of the type on the device have the
   * same token. Its time is renewed once a minute at most.
   */
  private isAsGiven({ deviceId, passTypeId, passId, pushToken }: Registration): Promise<boolean> {
    const fresh = new Date(this.clock.nowMs() - RENEWED_AFTER_MS);
    return this.database.read(async (db) => {
      const [row] = await db
        .select({ latest: passDevices.pushToken, ofTenant: passRegistrations.pushToken })
        .from(passRegistrations)
        .innerJoin(passDevices, whereDevice(deviceId, passTypeId))
        .where(and(whereRegistration(deviceId, passId), gt(passRegistrations.registeredAt, fresh)));
      return row?.latest === pushToken && row.ofTenant === pushToken;
    });
  }

  private store({ deviceId, passTypeId, passId, pushToken }: Registration): Promise<"created" | "known"> {
    const registeredAt = new Date(this.clock.nowMs());
    return this.database.write(async (transaction) => {
      await transaction
        .insert(passDevices)
        .values({ deviceId, passTypeId, pushToken })
        .onConflictDoUpdate({ target: [passDevices.deviceId, passDevices.passTypeId], set: { pushToken } });
      const created = await transaction
        .insert(passRegistrations)
        .values({ deviceId, passId, pushToken, registeredAt })
        .onConflictDoNothing()
        .returning({ passId: passRegistrations.passId });
      const [pass] = await transaction.select({ tenantId: passes.tenantId }).from(passes).where(eq(passes.id, passId));
      if (pass !== undefined) {
        const ofTenant = and(eq(passes.passTypeId, passTypeId), eq(passes.tenantId, pass.tenantId));
        const its = transaction.select({ id: passes.id }).from(passes).where(ofTenant);
        await transaction
          .update(passRegistrations)
          .set({ pushToken, registeredAt })
          .where(and(eq(passRegistrations.deviceId, deviceId), inArray(passRegistrations.passId, its)));
      }
      if (created.length === 0) return "known";
      await requireRoom(transaction, passId);
      return "created";
    });
  }

  async unregister(deviceId: string, passId: string): Promise<boolean> {
    const there = await this.database.read((db) => db.$count(passRegistrations, whereRegistration(deviceId, passId)));
    if (there === 0) return false;
    return this.database.write(async (transaction) => {
      const [pass] = await transaction
        .select({ passTypeId: passes.passTypeId })
        .from(passes)
        .where(eq(passes.id, passId));
      if (pass === undefined || pass.passTypeId === null) return false;
      const device = whereDevice(deviceId, pass.passTypeId);
      const locked = await transaction.select().from(passDevices).where(device).for("update");
      // Without a device row there are no registrations, and no lock against concurrent changes.
      if (locked.length === 0) return false;
      const deleted = await transaction
        .delete(passRegistrations)
        .where(whereRegistration(deviceId, passId))
        .returning({ passId: passRegistrations.passId });
      await removeUnused(transaction, deviceId, pass.passTypeId);
      return deleted.length > 0;
    });
  }

  targets(passId: string): Promise<readonly PushTarget[]> {
    return this.database.read((db) =>
      db
        .select({ deviceId: passDevices.deviceId, pushToken: TOKEN })
        .from(passRegistrations)
        .innerJoin(passes, eq(passes.id, passRegistrations.passId))
        .innerJoin(
          passDevices,
          and(eq(passDevices.deviceId, passRegistrations.deviceId), eq(passDevices.passTypeId, passes.passTypeId)),
        )
        .where(eq(passRegistrations.passId, passId))
        .orderBy(asc(passDevices.deviceId)),
    );
  }

  count(passId: string): Promise<number> {
    return this.database.read((db) => db.$count(passRegistrations, eq(passRegistrations.passId, passId)));
  }

  updatedSince(
    deviceId: string,
    passTypeId: string,
    since: number,
  ): Promise<{ readonly serials: readonly string[]; readonly tag: number } | null> {
    return this.database.read(async (db) => {
      // A tag that has not been issued yet means that the registry was restored from a backup since: the phone is
      // ahead.
      const last = db.select({ tag: passTypes.lastTag }).from(passTypes).where(eq(passTypes.passTypeId, passTypeId));
      const known = sql`CASE WHEN ${since}::bigint > (${last}) THEN 0 ELSE ${since}::bigint END`;
      const changed = await db
        .select({ serial: passes.serial, tag: passes.updateTag })
        .from(passRegistrations)
        .innerJoin(passes, eq(passes.id, passRegistrations.passId))
        .where(
          and(eq(passRegistrations.deviceId, deviceId), eq(passes.passTypeId, passTypeId), gt(passes.updateTag, known)),
        )
        // Oldest first: the device gets changes beyond the bound with its next request, which has the returned tag.
        .orderBy(asc(passes.updateTag))
        .limit(walletLimits.updatedSerialsMax);
      const latest = changed.at(-1);
      // Tenants that share a pass type may each have a pass with this serial.
      return latest === undefined
        ? null
        : { serials: [...new Set(changed.map(({ serial }) => serial))], tag: latest.tag };
    });
  }

  forget(passTypeId: string, pushToken: string, goneAtMs: number | null): Promise<void> {
    return this.database.write(async (transaction) => {
      const device = and(eq(passDevices.deviceId, passRegistrations.deviceId), eq(passDevices.passTypeId, passTypeId));
      const reached = await transaction
        .selectDistinct({ deviceId: passRegistrations.deviceId })
        .from(passRegistrations)
        .innerJoin(passes, and(eq(passes.id, passRegistrations.passId), eq(passes.passTypeId, passTypeId)))
        .innerJoin(passDevices, device)
        .where(
          or(
            eq(passRegistrations.pushToken, pushToken),
            and(isNull(passRegistrations.pushToken), eq(passDevices.pushToken, pushToken)),
          ),
        )
        .orderBy(asc(passRegistrations.deviceId));
      for (const { deviceId } of reached) await forgetOn(transaction, { deviceId, passTypeId, pushToken }, goneAtMs);
    });
  }

  async removeOfTenant(tenantId: string): Promise<boolean> {
    const ofTenant = eq(passes.tenantId, tenantId);
    // Each state has its own index.
    for (const state of [ne(passes.state, "failed"), eq(passes.state, "failed")]) {
      if (!(await this.database.write((transaction) => removeSome(transaction, and(ofTenant, state))))) return false;
    }
    return true;
  }

  async removeOfPasses(passIds: readonly string[]): Promise<void> {
    const ofThem = among(passRegistrations.passId, passIds);
    if ((await this.database.read((db) => db.$count(passRegistrations, ofThem))) === 0) return;
    // A pass that is being retried keeps its devices.
    const which = and(among(passes.id, passIds), eq(passes.state, "failed"));
    while (!(await this.database.write((transaction) => removeSome(transaction, which))));
  }
}

/** Registrations that one transaction processes. */
const REGISTRATIONS_AT_ONCE = 100;

/** Removes these passes from some of their devices. Resolves to whether none is left. */
async function removeSome(transaction: AnyDb, which: SQL | undefined): Promise<boolean> {
  // Takes any of them, because sorting all for each piece would cost more.
  const some = await transaction
    .select({ deviceId: passRegistrations.deviceId, passTypeId: passes.passTypeId })
    .from(passes)
    .innerJoin(passRegistrations, eq(passRegistrations.passId, passes.id))
    .where(and(which, isNotNull(passes.passTypeId)))
    .limit(REGISTRATIONS_AT_ONCE);
  const devices = new Map(some.map((one) => [`${one.deviceId}\0${one.passTypeId}`, one]));
  // Locks in one order, so that no two processes wait for each other.
  for (const [, { deviceId, passTypeId }] of [...devices].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (passTypeId === null) continue;
    await transaction.select().from(passDevices).where(whereDevice(deviceId, passTypeId)).for("update");
    const its = transaction
      .select({ id: passes.id })
      .from(passes)
      .where(and(which, eq(passes.passTypeId, passTypeId)));
    await transaction
      .delete(passRegistrations)
      .where(and(eq(passRegistrations.deviceId, deviceId), inArray(passRegistrations.passId, its)));
    await removeUnused(transaction, deviceId, passTypeId);
  }
  return some.length < REGISTRATIONS_AT_ONCE;
}

/** The push token for the tenant of the registered pass. */
const TOKEN = sql<string>`coalesce(${passRegistrations.pushToken}, ${passDevices.pushToken})`;

async function forgetOn(
  transaction: AnyDb,
  { deviceId, passTypeId, pushToken }: Pick<Registration, "deviceId" | "passTypeId" | "pushToken">,
  goneAtMs: number | null,
): Promise<void> {
  const [locked] = await transaction.select().from(passDevices).where(whereDevice(deviceId, passTypeId)).for("update");
  if (locked === undefined) return;
  const ofType = transaction.select({ id: passes.id }).from(passes).where(eq(passes.passTypeId, passTypeId));
  const token = sql`coalesce(${passRegistrations.pushToken}, ${locked.pushToken})`;
  await transaction
    .delete(passRegistrations)
    .where(
      and(
        eq(passRegistrations.deviceId, deviceId),
        inArray(passRegistrations.passId, ofType),
        eq(token, pushToken),
        goneAtMs === null ? undefined : lte(passRegistrations.registeredAt, new Date(goneAtMs)),
      ),
    );
  await removeUnused(transaction, deviceId, passTypeId);
}

function whereDevice(deviceId: string, passTypeId: string) {
  return and(eq(passDevices.deviceId, deviceId), eq(passDevices.passTypeId, passTypeId));
}

function whereRegistration(deviceId: string, passId: string) {
  return and(eq(passRegistrations.deviceId, deviceId), eq(passRegistrations.passId, passId));
}

/** Removes a device, which is locked, if no pass of the type is on it. */
async function removeUnused(transaction: AnyDb, deviceId: string, passTypeId: string): Promise<void> {
  await transaction
    .delete(passDevices)
    .where(and(whereDevice(deviceId, passTypeId), notExists(selectRegistrations(transaction, deviceId, passTypeId))));
}

function selectRegistrations(db: AnyDb, deviceId: string, passTypeId: string) {
  return db
    .select({ passId: passRegistrations.passId })
    .from(passRegistrations)
    .innerJoin(passes, eq(passes.id, passRegistrations.passId))
    .where(and(eq(passRegistrations.deviceId, deviceId), eq(passes.passTypeId, passTypeId)));
}

/** Undoes the transaction of a registration beyond the pass's limit. */
class PassFull extends Error {}

/**
 * Throws `PassFull`. A pass holder can invent devices. Concurrent registrations may exceed the bound by their number.
 */
async function requireRoom(transaction: AnyDb, passId: string): Promise<void> {
  const beyond = await transaction
    .select({ deviceId: passRegistrations.deviceId })
    .from(passRegistrations)
    .where(eq(passRegistrations.passId, passId))
    .offset(walletLimits.devicesPerPassMax)
    .limit(1);
  if (beyond.length > 0) throw new PassFull();
}
