import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import { passDevices, passes, passRegistrations, passTypes } from "../../../src/channels/wallet/tables.ts";
import type { OpenDatabase } from "../../../src/storage/postgres/database.ts";
import { must } from "../../support/must.ts";
import type { TestDatabase } from "../../tenants/registry-conformance.ts";
import { openTwoProcesses, type TwoProcesses } from "../../tenants/two-processes.ts";

const TYPE = "pass.test.event";

/** The guarantees of the registry for devices and their passes, on every PostgreSQL. */
export function deviceConformance(name: string, create: () => Promise<TestDatabase>): void {
  describe(name, () => {
    let processes: TwoProcesses;
    let here: OpenDatabase;
    let first: OpenRegistry;
    let second: OpenRegistry;
    let made = 0;

    beforeAll(async () => {
      processes = await openTwoProcesses(create);
      ({ here, first, second } = processes);
      for (const id of ["acme", "globex"]) await must(first.registry.createTenant({ id, name: id }));
    }, 300_000);

    afterAll(async () => {
      await processes?.close();
    });

    interface PassRow {
      readonly tenantId?: string;
      readonly passTypeId?: string;
      readonly serial?: string;
      readonly tag?: number;
    }

    const aDevice = () => `device-${(made += 1)}`;
    const aPass = async ({ tenantId = "acme", passTypeId = TYPE, serial, tag = 1 }: PassRow = {}) => {
      const id = `pass-${(made += 1)}`;
      await here.db.insert(passes).values({
        id,
        tenantId,
        type: "apple",
        serial: serial ?? id,
        state: "ready",
        version: 1,
        content: {},
        passTypeId,
        jobId: `job-${made}`,
        updateTag: tag,
        createdAt: new Date(0),
      });
      return id;
    };
    const retag = (passId: string, updateTag: number) =>
      here.db.update(passes).set({ updateTag }).where(eq(passes.id, passId));
    const register = (deviceId: string, passId: string, pushToken = "aa", passTypeId = TYPE) =>
      first.devices.register({ deviceId, passId, passTypeId, pushToken });
    const deviceRows = (deviceId: string) =>
      here.db.select().from(passDevices).where(eq(passDevices.deviceId, deviceId));

    test("a callback of Google's counts once, whichever processes take it at one moment, and goes with its pass", async () => {
      const passId = `pass-${(made += 1)}`;
      const objectId = `338.${passId}`;
      const google = { id: passId, tenantId: "acme", type: "google", serial: objectId, state: "ready" } as const;
      const content = { type: "google", kind: "generic", classId: "338.c", object: {} };
      await here.db
        .insert(passes)
        .values({ ...google, version: 1, content, jobId: `job-${made}`, createdAt: new Date(0) });
      const say = async (event: string, nonce: string, { googleSaves }: OpenRegistry = first) => {
        const endsMs = Date.now() + 3_600_000;
        const callback = { issuerId: "338", classId: "338.c", objectId, event, nonce, endsMs };
        return (await googleSaves.take(callback)).kind;
      };
      const taken = await Promise.all(
        Array.from({ length: 20 }, (_, i) => say("save", `nonce-${i % 5}`, i % 2 === 0 ? first : second)),
      );
      expect(taken.filter((kind) => kind === "taken")).toHaveLength(5);
      expect(taken.filter((kind) => kind === "repeated")).toHaveLength(15);
      expect(await second.googleSaves.holders(passId)).toBe(5);
      await Promise.all(Array.from({ length: 7 }, (_, i) => say("del", `gone-${i}`)));
      expect(await first.googleSaves.holders(passId)).toBe(0);
      await here.db.delete(passes).where(eq(passes.id, passId));
      expect(await first.googleSaves.holders(passId)).toBeNull();
      expect(await say("save", "late")).toBe("unknown");
    });

    test("a device has a pass from its first registration to its unregistration, however often either comes", async () => {
      const [device, pass] = [aDevice(), await aPass()];
      expect(await register(device, pass)).toBe("created");
      expect(await register(device, pass)).toBe("known");
      expect(await first.devices.targets(pass)).toEqual([{ deviceId: device, pushToken: "aa" }]);
      expect(await first.devices.count(pass)).toBe(1);
      expect(await first.devices.unregister(device, pass)).toBe(true);
      expect(await first.devices.unregister(device, pass)).toBe(false);
      expect(await first.devices.unregister(device, "pass-of-nobody")).toBe(false);
      expect([await first.devices.targets(pass), await first.devices.count(pass)]).toEqual([[], 0]);
      expect(await deviceRows(device)).toEqual([]);
    });

    test("a repeated registration writes nothing, and one that brings another token does", async () => {
      const [device, pass, other] = [aDevice(), await aPass(), await aPass()];
      await register(device, pass);
      // Returns the transaction that last wrote the row.
      const written = async () => {
        const [row] = await here.db
          .select({ by: sql<string>`xmin::text` })
          .from(passDevices)
          .where(eq(passDevices.deviceId, device));
        return row?.by;
      };
      const before = await written();
      expect([await register(device, pass), await written()]).toEqual(["known", before]);
      expect([await register(device, pass, "bb"), await written()]).not.toContain(before);
      // Another pass brings the token of all.
      await register(device, other, "cc");
      const second = await written();
      expect([await register(device, pass, "cc"), await written()]).toEqual(["known", second]);
      expect(await register(device, pass, "dd")).toBe("known");
      expect(await first.devices.targets(other)).toEqual([{ deviceId: device, pushToken: "dd" }]);
    });

    test("a new push token holds for all passes of the type on the device, and for no other type's", async () => {
      const device = aDevice();
      const [one, two, foreign] = [await aPass(), await aPass(), await aPass({ passTypeId: "pass.test.other" })];
      await register(device, one, "old");
      await register(device, two, "old");
      await register(device, foreign, "old", "pass.test.other");
      expect(await register(device, two, "new")).toBe("known");
      const tokens = await Promise.all([one, two, foreign].map((pass) => first.devices.targets(pass)));
      expect(tokens.map(([target]) => target?.pushToken)).toEqual(["new", "new", "old"]);
    });

    test("a push token that comes with one tenant's pass moves and ends no other tenant's", async () => {
      const device = aDevice();
      const [theirs, own] = [await aPass(), await aPass({ tenantId: "globex" })];
      await register(device, theirs, "true");
      await register(device, own, "false");
      expect(await first.devices.targets(theirs)).toEqual([{ deviceId: device, pushToken: "true" }]);
      expect(await first.devices.targets(own)).toEqual([{ deviceId: device, pushToken: "false" }]);
      await first.devices.forget(TYPE, "false", null);
      expect(await first.devices.targets(theirs)).toEqual([{ deviceId: device, pushToken: "true" }]);
      expect(await first.devices.targets(own)).toEqual([]);
    });

    test("a registration of a former release is reached by its device's last push token", async () => {
      const [device, pass] = [aDevice(), await aPass()];
      await register(device, pass, "old");
      await here.db.update(passRegistrations).set({ pushToken: null }).where(eq(passRegistrations.passId, pass));
      expect(await first.devices.targets(pass)).toEqual([{ deviceId: device, pushToken: "old" }]);
      await first.devices.forget(TYPE, "old", null);
      expect([await first.devices.targets(pass), await deviceRows(device)]).toEqual([[], []]);
    });

    test("a device keeps its other passes when one goes", async () => {
      const device = aDevice();
      const [one, two] = [await aPass(), await aPass()];
      await register(device, one);
      await register(device, two);
      await first.devices.unregister(device, one);
      expect(await first.devices.targets(two)).toEqual([{ deviceId: device, pushToken: "aa" }]);
    });

    test("the devices of a deleted tenant are forgotten, but for the passes of others on them", async () => {
      await must(first.registry.createTenant({ id: "leaves", name: "Leaves" }));
      const [shared, kept] = [aDevice(), await aPass()];
      // More than one piece, and two pass types.
      const devices = [shared, ...Array.from({ length: 59 }, aDevice)];
      const other = "pass.test.other";
      const left = [await aPass({ tenantId: "leaves" }), await aPass({ tenantId: "leaves", passTypeId: other })];
      for (const device of devices) {
        await register(device, left[0] ?? "");
        await register(device, left[1] ?? "", "bb", other);
      }
      await register(shared, kept);
      let pieces = 1;
      while (!(await first.devices.removeOfTenant("leaves"))) pieces += 1;
      expect(pieces).toBe(2);
      expect((await Promise.all(left.map((pass) => first.devices.targets(pass)))).flat()).toEqual([]);
      expect((await Promise.all(devices.map(deviceRows))).flat().map(({ deviceId }) => deviceId)).toEqual([shared]);
      expect(await first.devices.targets(kept)).toEqual([{ deviceId: shared, pushToken: "aa" }]);
    });

    test("the changes are those of registered passes of the type, strictly after the tag", async () => {
      const [device, other] = [aDevice(), aDevice()];
      const [one, two] = [await aPass({ serial: "S1", tag: 100 }), await aPass({ serial: "S2", tag: 101 })];
      const foreign = await aPass({ serial: "S3", passTypeId: "pass.test.other", tag: 200 });
      const unsigned = await aPass({ serial: "S4", tag: 0 });
      await aPass({ serial: "S5", tag: 300 });
      for (const pass of [one, two, unsigned]) await register(device, pass);
      await register(device, foreign, "aa", "pass.test.other");
      const since = (tag: number, type = TYPE) => first.devices.updatedSince(device, type, tag);
      expect(await since(0)).toEqual({ serials: ["S1", "S2"], tag: 101 });
      expect(await since(100)).toEqual({ serials: ["S2"], tag: 101 });
      expect(await since(101)).toBeNull();
      await retag(one, 102);
      expect(await since(101)).toEqual({ serials: ["S1"], tag: 102 });
      expect(await since(0, "pass.test.other")).toEqual({ serials: ["S3"], tag: 200 });
      expect(await since(0, "pass.test.none")).toBeNull();
      expect(await first.devices.updatedSince(other, TYPE, 0)).toBeNull();
    });

    test("a tag that was never given out, as after a restore, counts as none", async () => {
      const device = aDevice();
      const passTypeId = "pass.test.restored";
      await register(device, await aPass({ serial: "R1", tag: 100, passTypeId }), "aa", passTypeId);
      await here.db.insert(passTypes).values({ passTypeId, lastTag: 100 });
      expect(await first.devices.updatedSince(device, passTypeId, 100)).toBeNull();
      expect(await first.devices.updatedSince(device, passTypeId, 101)).toEqual({ serials: ["R1"], tag: 100 });
    });

    test("a serial that two tenants have on the same pass type is named once", async () => {
      const device = aDevice();
      const [mine, theirs] = [
        await aPass({ serial: "shared", tag: 7 }),
        await aPass({ serial: "shared", tag: 9, tenantId: "globex" }),
      ];
      await register(device, mine);
      await register(device, theirs);
      expect(await first.devices.updatedSince(device, TYPE, 0)).toEqual({ serials: ["shared"], tag: 9 });
    });

    test("more changes than one answer holds are in the following ones, none skipped", async () => {
      const device = aDevice();
      const total = walletLimits.updatedSerialsMax + 5;
      const ids = Array.from({ length: total }, (_, at) => `many-${at}`);
      const rows = ids.map((id, at) => ({
        id,
        tenantId: "acme",
        type: "apple" as const,
        serial: id,
        state: "ready" as const,
        version: 1,
        content: {},
        passTypeId: "pass.test.many",
        jobId: `job-of-${id}`,
        updateTag: total - at,
        createdAt: new Date(0),
      }));
      await here.db.insert(passes).values(rows);
      await here.db
        .insert(passRegistrations)
        .values(ids.map((passId) => ({ deviceId: device, passId, registeredAt: new Date(0) })));
      const head = await first.devices.updatedSince(device, "pass.test.many", 0);
      expect([head?.serials.length, head?.tag]).toEqual([
        walletLimits.updatedSerialsMax,
        walletLimits.updatedSerialsMax,
      ]);
      const tail = await first.devices.updatedSince(device, "pass.test.many", head?.tag ?? 0);
      expect([tail?.serials.length, tail?.tag]).toEqual([5, total]);
    }, 90_000);

    test("a push token that the push service disowns takes its registrations of the type along, and no others", async () => {
      const [gone, kept] = [aDevice(), aDevice()];
      const [pass, foreign] = [await aPass(), await aPass({ passTypeId: "pass.test.other" })];
      await register(gone, pass, "dead");
      await register(gone, foreign, "dead", "pass.test.other");
      await register(kept, pass, "alive");
      await first.devices.forget(TYPE, "dead", null);
      await first.devices.forget(TYPE, "never known", null);
      expect(await first.devices.targets(pass)).toEqual([{ deviceId: kept, pushToken: "alive" }]);
      expect(await first.devices.count(pass)).toBe(1);
      expect(await first.devices.count(foreign)).toBe(1);
      expect(await register(gone, pass, "fresh")).toBe("created");
    });

    test("a push token that is dead since a time takes no registration along that was made or renewed later", async () => {
      const device = aDevice();
      const [one, two] = [await aPass(), await aPass()];
      for (const pass of [one, two]) await register(device, pass, "reborn");
      await here.db
        .update(passRegistrations)
        .set({ registeredAt: new Date(1_000) })
        .where(eq(passRegistrations.deviceId, device));
      expect(await register(device, two, "reborn")).toBe("known");
      await first.devices.forget(TYPE, "reborn", 2_000);
      for (const pass of [one, two]) expect(await first.devices.count(pass)).toBe(1);
      await here.db
        .update(passRegistrations)
        .set({ registeredAt: new Date(1_000) })
        .where(eq(passRegistrations.passId, one));
      await first.devices.forget(TYPE, "reborn", 1_000);
      expect([await first.devices.count(one), await first.devices.count(two)]).toEqual([0, 1]);
      expect(await deviceRows(device)).toHaveLength(1);
    });

    test("registrations and unregistrations at the same time leave no registration without a device", async () => {
      const device = aDevice();
      const ids = await Promise.all(Array.from({ length: 4 }, () => aPass()));
      const rounds = Array.from({ length: 10 }, (_, round) =>
        ids.flatMap((pass, at) => [
          register(device, pass, `t${round}`),
          second.devices.unregister(device, ids[(at + round) % ids.length] ?? pass),
        ]),
      );
      await Promise.all(rounds.flat());
      const registered = await here.db.select().from(passRegistrations).where(eq(passRegistrations.deviceId, device));
      const targets = await Promise.all(ids.map((pass) => first.devices.targets(pass)));
      expect(targets.flat()).toHaveLength(registered.length);
      expect(await deviceRows(device)).toHaveLength(registered.length === 0 ? 0 : 1);
    }, 90_000);

    test("a pass is on no more devices than the bound allows, and those that have it keep it", async () => {
      const pass = await aPass();
      const rows = Array.from({ length: walletLimits.devicesPerPassMax }, (_, at) => ({
        deviceId: `crowd-${at}`,
        passId: pass,
        registeredAt: new Date(0),
      }));
      for (let at = 0; at < rows.length; at += 5_000) {
        await here.db.insert(passRegistrations).values(rows.slice(at, at + 5_000));
      }
      expect(await register("one-too-many", pass)).toBe("full");
      expect(await deviceRows("one-too-many")).toHaveLength(0);
      expect(await register("crowd-7", pass)).toBe("known");
      expect(await first.devices.count(pass)).toBe(walletLimits.devicesPerPassMax);
    }, 90_000);
  });
}
