import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import { FailedPasses } from "../../../src/channels/wallet/failed-passes.ts";
import { GoogleClassRepository } from "../../../src/channels/wallet/google-class-repository.ts";
import type { GoogleClassOwners } from "../../../src/channels/wallet/google-classes.ts";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import type { NewPass, PassStore, PassUpdate, UnfinishedPass } from "../../../src/channels/wallet/passes.ts";
import { passDevices, passImages, passes as passTable, passVersions } from "../../../src/channels/wallet/tables.ts";
import type { AppleContent, GoogleContent } from "../../../src/domain/channels/wallet.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { Database, type OpenDatabase } from "../../../src/storage/postgres/database.ts";
import { must } from "../../support/must.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import type { TestDatabase } from "../../tenants/registry-conformance.ts";
import { openTwoProcesses, type TwoProcesses } from "../../tenants/two-processes.ts";

const IN_TIME_MS = 60_000;
const TOKEN = "an-authentication-token-of-32-ch";
const apple: AppleContent = {
  type: "apple",
  style: "generic",
  pass: { organizationName: "Acme", description: "A pass", generic: { backFields: [{ key: "a", value: "1" }] } },
  images: { "icon.png": "aa11" },
};
const google: GoogleContent = { type: "google", kind: "generic", classId: "33.c", object: { id: "33.o", x: [1, "é"] } };

/** A pass's content with the images, one file each. */
function having(...hashes: readonly string[]): { content: AppleContent; images: Map<string, Uint8Array> } {
  return {
    content: { ...apple, images: Object.fromEntries(hashes.map((hash, i) => [`${i}.png`, hash])) },
    images: new Map(hashes.map((hash) => [hash, new TextEncoder().encode(hash)])),
  };
}

/** The guarantees of the registry for passes and their tokens, on every PostgreSQL. */
export function passConformance(name: string, create: () => Promise<TestDatabase>): void {
  describe(name, () => {
    let processes: TwoProcesses;
    let here: OpenDatabase;
    let first: OpenRegistry;
    let passes: PassStore;
    /** The same in another process. */
    let others: PassStore;
    let otherOwners: GoogleClassOwners;

    beforeAll(async () => {
      processes = await openTwoProcesses(create);
      ({ here, first } = processes);
      passes = first.passes;
      const { second } = processes;
      others = second.passes;
      otherOwners = second.googleClasses;
      await must(first.registry.createTenant({ id: "acme", name: "acme", tokens: 1_000 }));
      await must(first.registry.createTenant({ id: "globex", name: "globex", tokens: 1_000 }));
    }, IN_TIME_MS);

    afterAll(async () => {
      await processes?.close();
    }, IN_TIME_MS);

    let made = 0;
    const aPass = (changes: Partial<NewPass> = {}): NewPass => {
      made += 1;
      return {
        passId: `pass-${made}`,
        tenantId: "acme",
        serial: `serial-${made}`,
        content: apple,
        passTypeId: "pass.test.acme",
        authenticationToken: TOKEN,
        jobId: `job-${made}`,
        images: new Map([["aa11", new Uint8Array([0x89, 0x50, 0, 255])]]),
        ...changes,
      };
    };
    const anUpdate = (passId: string, changes: Partial<PassUpdate> = {}): PassUpdate => {
      made += 1;
      const unchanged = { notificationKind: null, notifyMessage: null, images: new Map() };
      return { passId, jobId: `job-${made}`, ...unchanged, change: ({ content }) => content, ...changes };
    };
    const selectImages = async (tenantId: string) => {
      const ofTenant = eq(passImages.tenantId, tenantId);
      const rows = await here.db.select({ hash: passImages.hash }).from(passImages).where(ofTenant);
      return rows.map(({ hash }) => hash).sort();
    };
    const changeTo = (passId: string, ...hashes: readonly string[]): PassUpdate => {
      const { content, images } = having(...hashes);
      return anUpdate(passId, { images, change: () => content });
    };
    const balance = async (tenantId: string) => (await must(first.registry.tenant(tenantId))).tokens;
    const movements = async (tenantId: string) =>
      (await must(first.registry.tokenMovements(tenantId, null, 500))).items;

    test("a Google class belongs to the tenant that claims it first, across all processes", async () => {
      const owners = first.googleClasses;
      expect(await owners.findOwner("33.final")).toBeNull();
      expect(await owners.claim("33.final", "acme")).toBe("acme");
      expect(await otherOwners.claim("33.final", "globex")).toBe("acme");
      expect(await owners.claim("33.final", "acme")).toBe("acme");
      expect(await otherOwners.findOwner("33.final")).toBe("acme");
      expect(await owners.findOwner("33.FINAL")).toBeNull();
      const claims = ["acme", "globex"].flatMap((tenantId) =>
        [owners, otherOwners].map((each) => [each, tenantId] as const),
      );
      const said = await Promise.all(claims.map(([each, tenantId]) => each.claim("33.contested", tenantId)));
      expect(new Set(said).size).toBe(1);
      expect(await owners.findOwner("33.contested")).toBe(said[0] ?? "nobody");
    });

    test("a pass is given back as it was stored, by its tenant alone", async () => {
      const { images, ...stored } = aPass();
      await passes.create({ ...stored, images });
      const expected = { ...stored, state: "creating", version: 1 };
      expect(await others.find("acme", stored.passId)).toEqual(expected as never);
      expect(await passes.find("globex", stored.passId)).toBeNull();
      expect(await passes.find("acme", "pass-unknown")).toBeNull();
      expect(await passes.findBySerial("pass.test.acme", stored.serial)).toEqual([expected as never]);
      expect(await passes.findBySerial("pass.test.other", stored.serial)).toEqual([]);
      expect(await others.signable("acme", stored.passId)).toEqual({ pass: expected, images } as never);
      expect(await passes.signable("globex", stored.passId)).toBeNull();
    });

    test("an image goes with the update that takes it from the last pass that has it, and only then", async () => {
      const tenantId = "painter";
      await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 10 }));
      const [one, other] = [aPass({ tenantId, ...having("u1", "u2") }), aPass({ tenantId, ...having("u2") })];
      for (const pass of [one, other]) await passes.create(pass);
      expect(await selectImages(tenantId)).toEqual(["u1", "u2"]);
      await passes.update(tenantId, changeTo(one.passId, "u2", "u3"));
      expect(await selectImages(tenantId)).toEqual(["u2", "u3"]);
      await others.update(tenantId, changeTo(one.passId, "u3"));
      expect(await selectImages(tenantId)).toEqual(["u2", "u3"]);
      await passes.update(tenantId, changeTo(other.passId, "u3"));
      expect(await selectImages(tenantId)).toEqual(["u3"]);
      for (let i = 4; i < 20; i += 1) await passes.update(tenantId, changeTo(one.passId, `u${i}`));
      expect(await selectImages(tenantId)).toEqual(["u19", "u3"]);
      expect([...((await passes.signable(tenantId, one.passId))?.images.keys() ?? [])]).toEqual(["u19"]);
    });

    test("an image that a release without counts may share is never removed", async () => {
      const tenantId = "former";
      await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 10 }));
      const pass = aPass({ tenantId, ...having("aa11", "u1") });
      await passes.create(pass);
      await passes.update(tenantId, changeTo(pass.passId, "u2"));
      expect(await selectImages(tenantId)).toEqual(["aa11", "u2"]);
    });

    test(
      "an image that one pass gets while others lose it is there",
      async () => {
        const tenantId = "crowd";
        await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 1_000 }));
        for (let round = 0; round < 20; round += 1) {
          const [losing, gaining] = [aPass({ tenantId, ...having("u1") }), aPass({ tenantId, ...having("u2") })];
          for (const pass of [losing, gaining]) await passes.create(pass);
          const made = aPass({ tenantId, ...having("u1") });
          await Promise.all([
            passes.update(tenantId, changeTo(losing.passId, `u3-${round}`)),
            others.create(made),
            others.update(tenantId, changeTo(gaining.passId, "u1")),
          ]);
          for (const { passId } of [made, gaining]) {
            expect([...((await passes.signable(tenantId, passId))?.images.keys() ?? [])]).toEqual(["u1"]);
            await passes.update(tenantId, changeTo(passId, `u4-${round}`));
          }
          expect(await selectImages(tenantId)).not.toContain("u1");
        }
      },
      IN_TIME_MS,
    );

    test("an update that would give a pass more than 4 MiB of images is refused, those that it keeps included", async () => {
      const pass = aPass(having("u-kept-1", "u-kept-2"));
      const large = (hash: string) => [hash, new Uint8Array(1.5 * 1024 * 1024)] as const;
      await passes.create({ ...pass, images: new Map([large("u-kept-1"), large("u-kept-2")]) });
      const images = new Map([large("u-more")]);
      const { content } = having("u-kept-1", "u-kept-2", "u-more");
      const refused = await passes.update("acme", anUpdate(pass.passId, { images, change: () => content }));
      expect(refused).toEqual({ why: "pass_data must not have images of more than 4194304 bytes together" });
      expect(await selectImages("acme")).not.toContain("u-more");
      const { content: fewer } = having("u-kept-1", "u-more");
      const answer = await passes.update("acme", anUpdate(pass.passId, { images, change: () => fewer }));
      expect(answer).toMatchObject({ version: 2 });
    });

    test("a pass that has more than 4 MiB of images from before can be changed, and gets no larger", async () => {
      const pass = aPass(having("u-huge", "u-small"));
      const images = new Map([["u-huge", new Uint8Array(5 * 1024 * 1024)]]);
      await passes.create({ ...pass, images: new Map([...images, ...having("u-small").images]) });
      const change: PassUpdate["change"] = ({ content }) => ({ ...(content as AppleContent), style: "coupon" });
      expect(await passes.update("acme", anUpdate(pass.passId, { change }))).toMatchObject({ version: 2 });
      expect(await passes.update("acme", changeTo(pass.passId, "u-huge"))).toMatchObject({ version: 3 });
      expect(await passes.update("acme", changeTo(pass.passId, "u-huge", "u-tiny"))).toHaveProperty("why");
    });

    test("a pass of Google's has neither token nor pass type", async () => {
      const pass = aPass({ content: google, passTypeId: null, authenticationToken: null, images: new Map() });
      await passes.create(pass);
      expect(await passes.find("acme", pass.passId)).toMatchObject({ content: google, authenticationToken: null });
      expect(await passes.putBundle(pass.passId, 1, new Uint8Array([1]))).toBeNull();
    });

    test("the token that devices show is not readable in the database", async () => {
      const pass = aPass();
      await passes.create(pass);
      const rows = await here.db.execute(`select * from passes where id = '${pass.passId}'`);
      expect(JSON.stringify(rows)).not.toContain(TOKEN);
    });

    test("a serial is used once per tenant and kind, and a refused pass costs nothing", async () => {
      const pass = aPass();
      await passes.create(pass);
      const before = await balance("acme");
      const again = { ...aPass(), serial: pass.serial };
      expect(await others.create(again)).toBe("serial_used");
      expect(await passes.find("acme", again.passId)).toBeNull();
      expect(await balance("acme")).toBe(before);
      expect(await passes.holder(again)).toMatchObject({ passId: pass.passId });
      await passes.create(aPass({ tenantId: "globex", serial: pass.serial }));
      await passes.create(aPass({ serial: pass.serial, content: google }));
    });

    test("a pass takes one token with its job, and gives it back with its serial once", async () => {
      const pass = aPass();
      const before = await balance("acme");
      await passes.create(pass);
      expect(await balance("acme")).toBe(before - 1);
      expect((await movements("acme"))[0]).toMatchObject({ amount: -1, job_id: pass.jobId, balance: before - 1 });
      await Promise.all([passes, others, passes].map((store) => store.undoCreate("acme", pass.jobId)));
      expect(await balance("acme")).toBe(before);
      const ofJob = (await movements("acme")).filter(({ job_id }) => job_id === pass.jobId);
      expect(ofJob.map(({ amount }) => amount)).toEqual([1, -1]);
      expect(await passes.find("acme", pass.passId)).toMatchObject({ state: "failed" });
      expect(await passes.findBySerial("pass.test.acme", pass.serial)).toEqual([]);
      expect(await passes.update("acme", anUpdate(pass.passId))).toBeNull();
      await passes.create(aPass({ serial: pass.serial }));
    });

    test("a pass whose job is tried again takes its token and its serial again, once", async () => {
      const pass = aPass();
      const before = await balance("acme");
      await passes.create(pass);
      expect(await passes.redoCreate("acme", pass.jobId)).toBe("not_failed");
      expect(await passes.redoCreate("acme", "job-of-nobody")).toBe("none");
      expect(await passes.redoCreate("globex", pass.jobId)).toBe("none");
      await passes.undoCreate("acme", pass.jobId);
      const redone = await Promise.all([passes, others].map((store) => store.redoCreate("acme", pass.jobId)));
      expect(redone.toSorted()).toEqual(["done", "not_failed"]);
      expect(await balance("acme")).toBe(before - 1);
      expect(await passes.find("acme", pass.passId)).toMatchObject({ state: "creating" });
      await passes.undoCreate("acme", pass.jobId);
      await passes.create(aPass({ serial: pass.serial }));
      expect(await passes.redoCreate("acme", pass.jobId)).toBe("serial_used");
      expect(await balance("acme")).toBe(before - 1);
      await must(first.registry.createTenant({ id: "poor", name: "poor", tokens: 1 }));
      const poor = aPass({ tenantId: "poor" });
      await passes.create(poor);
      await passes.undoCreate("poor", poor.jobId);
      await passes.create(aPass({ tenantId: "poor" }));
      expect(await passes.redoCreate("poor", poor.jobId)).toBe("no_tokens");
      expect(await passes.find("poor", poor.passId)).toMatchObject({ state: "failed" });
    });

    test("a tenant whose passes fail all day leaves a bounded number of movements, and may go on the day after", async () => {
      const tenantId = "failing";
      await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 1 }));
      const today = Math.floor(Date.now() / 86_400_000);
      await here.db.execute(
        sql`update tenants set refund_day = ${today}, refunds = ${walletLimits.refundsADayMax - 1} where id = ${tenantId}`,
      );
      const last = aPass({ tenantId });
      expect(await passes.create(last)).toBe("created");
      await others.undoCreate(tenantId, last.jobId);
      expect(await passes.create(aPass({ tenantId }))).toBe("failed_often");
      expect(await others.redoCreate(tenantId, last.jobId)).toBe("failed_often");
      expect(await balance(tenantId)).toBe(1);
      await here.db.execute(sql`update tenants set refund_day = ${today - 1} where id = ${tenantId}`);
      expect(await passes.create(aPass({ tenantId }))).toBe("created");
      expect(await passes.create(aPass({ tenantId }))).toBe("no_tokens");
    });

    test("a tenant has a bounded number of classes on the shared issuer, and keeps those that it has", async () => {
      const owners = new GoogleClassRepository(new Database(here.db, systemClock), systemClock, 2);
      await must(first.registry.createTenant({ id: "classy", name: "classy" }));
      expect(await owners.claim("33.bound-1", "classy")).toBe("classy");
      expect(await owners.claim("33.bound-2", "classy")).toBe("classy");
      expect(await owners.claim("33.bound-3", "classy")).toBeNull();
      expect(await owners.claim("33.bound-1", "classy")).toBe("classy");
      expect(await owners.claim("33.bound-3", "globex")).toBe("globex");
    });

    test("nothing is kept of a pass whose job was cancelled or never queued, but what other passes have", async () => {
      const tenantId = "canceler";
      await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 10 }));
      const kept = aPass({ tenantId, ...having("u1") });
      const [canceled, failed, done] = [aPass, aPass, aPass].map((make) => make({ tenantId, ...having("u1", "u2") }));
      for (const pass of [kept, canceled, failed, done]) await passes.create(pass ?? kept);
      await passes.undoCreate(tenantId, failed?.jobId ?? "");
      await passes.finishCreate(done?.passId ?? "");
      for (const pass of [canceled, failed, done]) {
        await Promise.all([passes, others].map((store) => store.discard(tenantId, pass?.jobId ?? "")));
      }
      expect(await balance(tenantId)).toBe(8);
      const found = await Array.fromAsync([canceled, failed, done], (pass) =>
        passes.find(tenantId, pass?.passId ?? ""),
      );
      expect(found.map((pass) => pass?.state)).toEqual([undefined, undefined, "ready"]);
      expect(await selectImages(tenantId)).toEqual(["u1", "u2"]);
      await passes.update(tenantId, changeTo(done?.passId ?? "", "u1"));
      expect(await selectImages(tenantId)).toEqual(["u1"]);
      expect(await passes.redoCreate(tenantId, failed?.jobId ?? "")).toBe("none");
      await passes.create(aPass({ tenantId, serial: canceled?.serial ?? "", jobId: canceled?.jobId ?? "" }));
    });

    test("a tenant's failed passes and their images take its share at most, and the oldest go", async () => {
      const tenantId = "unlucky";
      await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 100 }));
      const shareBytes = 64 * 1024;
      const telemetry = new QuietTelemetry();
      const failed = new FailedPasses({
        database: new Database(here.db, systemClock),
        devices: first.devices,
        telemetry,
        shareBytes,
      });
      const large = (hash: string) => [hash, systemRandom.fill(new Uint8Array(20_000))] as const;
      const withImages = async (...hashes: readonly string[]) => {
        const images = new Map(hashes.map((hash) => (hash.startsWith("u") ? large(hash) : [hash, new Uint8Array(1)])));
        const pass = aPass({ tenantId, ...having(...hashes), images });
        await passes.create(pass);
        return pass;
      };
      const fail = async (pass: NewPass) => {
        await passes.undoCreate(tenantId, pass.jobId);
        await failed.note(tenantId, pass.passId);
      };
      const readStates = async (all: readonly NewPass[]) => {
        const found = await Array.fromAsync(all, ({ passId }) => passes.find(tenantId, passId));
        return found.map((pass) => (pass === null ? "gone" : pass.state));
      };
      // Three of the four have room. An image that all of them share with a pass that has not failed counts once.
      const ready = await withImages("u0");
      const four = await Array.fromAsync([1, 2, 3, 4], (i) => withImages("u0", `u${i}`));
      const redone = four[0] ?? ready;
      for (const pass of four) await fail(pass);
      expect(await readStates([ready, ...four])).toEqual(["creating", "gone", "gone", "failed", "failed"]);
      expect(await selectImages(tenantId)).toEqual(["u0", "u3", "u4"]);
      expect(await passes.redoCreate(tenantId, redone.jobId)).toBe("none");
      expect(await passes.redoCreate(tenantId, four[2]?.jobId ?? "")).toBe("done");
      expect([...((await passes.signable(tenantId, four[2]?.passId ?? ""))?.images.keys() ?? [])].sort()).toEqual([
        "u0",
        "u3",
      ]);
      // Many small ones, too.
      const small = await Array.fromAsync({ length: 70 }, () => withImages());
      for (const pass of small) await fail(pass);
      const states = await readStates(small);
      expect(states.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => "gone"));
      expect(states.slice(-30)).toEqual(Array.from({ length: 30 }, () => "failed"));
      expect(await readStates(four)).toEqual(["gone", "gone", "creating", "gone"]);
      expect(telemetry.lines).toEqual([]);
      expect(await selectImages(tenantId)).toEqual(["u0", "u3"]);
    });

    test("the share of a tenant with thousands of failed passes is looked through within a read's time", async () => {
      const tenantId = "crashed";
      await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 10 }));
      const last = aPass({ tenantId, ...having("u0") });
      await passes.create(last);
      await here.db.execute(sql`
        insert into passes (id, tenant_id, type, serial, state, version, content, job_id, created_at)
        select ${tenantId} || i, ${tenantId}, 'apple', i, 'failed', 1, '{}', ${tenantId} || i, now()
        from generate_series(1, 5000) i`);
      await here.db.execute(sql`
        insert into pass_image_uses (tenant_id, pass_id, hash)
        select ${tenantId}, ${tenantId} || i, 'u0' from generate_series(1, 5000) i`);
      const telemetry = new QuietTelemetry();
      const database = new Database(here.db, systemClock);
      const failed = new FailedPasses({ database, devices: first.devices, telemetry, shareBytes: 5_000 * 1_024 });
      await passes.undoCreate(tenantId, last.jobId);
      await failed.note(tenantId, last.passId);
      expect(telemetry.lines).toEqual([]);
      const left = await here.db.$count(passTable, eq(passTable.tenantId, tenantId));
      expect(left).toBeGreaterThan(4_000);
      expect(left).toBeLessThan(5_000);
    });

    test("a failed pass goes when its time is over, with its devices", async () => {
      const tenantId = "yesterday";
      await must(first.registry.createTenant({ id: tenantId, name: tenantId, tokens: 10 }));
      const [old, open] = [aPass({ tenantId, ...having("u1") }), aPass({ tenantId, ...having("u2") })];
      const registration = { passTypeId: "pass.test.acme", pushToken: "aa" };
      for (const [pass, deviceId] of [
        [old, "phone-1"],
        [open, "phone-2"],
      ] as const) {
        await passes.create(pass);
        await first.devices.register({ ...registration, passId: pass.passId, deviceId });
      }
      const beforeMs = Date.now();
      await passes.undoCreate(tenantId, old.jobId);
      while (!(await passes.removeFailed(beforeMs)));
      expect(await passes.find(tenantId, old.passId)).toMatchObject({ state: "failed" });
      while (!(await passes.removeFailed(Date.now() + 1_000)));
      expect(await passes.find(tenantId, old.passId)).toBeNull();
      expect(await passes.find(tenantId, open.passId)).toMatchObject({ state: "creating" });
      expect(await selectImages(tenantId)).toEqual(["u2"]);
      const phones = await here.db.select({ id: passDevices.deviceId }).from(passDevices);
      expect(phones.map(({ id }) => id)).toEqual(["phone-2"]);
    });

    test("neither a finished pass nor another job's pass is undone", async () => {
      const pass = aPass();
      await passes.create(pass);
      const before = await balance("acme");
      await passes.undoCreate("acme", "job-of-nobody");
      await passes.undoCreate("globex", pass.jobId);
      await passes.finishCreate(pass.passId);
      await passes.finishCreate(pass.passId);
      await passes.undoCreate("acme", pass.jobId);
      const update = anUpdate(pass.passId);
      await passes.update("acme", update);
      await passes.undoCreate("acme", update.jobId);
      expect(await passes.find("acme", pass.passId)).toMatchObject({ state: "ready", version: 2 });
      expect(await balance("acme")).toBe(before);
    });

    test(
      "of 200 passes at once on a balance of 100, exactly 100 are stored and paid",
      async () => {
        await must(first.registry.createTenant({ id: "hundred", name: "hundred", tokens: 100 }));
        const all = Array.from({ length: 200 }, () => aPass({ tenantId: "hundred" }));
        const answers = await Promise.all(all.map((pass, i) => (i % 2 === 0 ? passes : others).create(pass)));
        const of = (wanted: string) => answers.filter((answer) => answer === wanted);
        expect([of("created").length, of("no_tokens").length]).toEqual([100, 100]);
        expect(await balance("hundred")).toBe(0);
        const eventStore = await movements("hundred");
        expect(eventStore.reduce((sum, { amount }) => sum + amount, 0)).toBe(0);
        const charged = eventStore.flatMap(({ amount, job_id }) => (amount === -1 ? [job_id] : []));
        // One by one: a read has two seconds, also behind others.
        const stored = await Array.fromAsync(all, ({ passId }) => passes.find("hundred", passId));
        const jobs = stored.flatMap((pass) => (pass === null ? [] : [pass.jobId]));
        expect(jobs.sort()).toEqual(charged.map(String).sort());
        expect(new Set(eventStore.map((one) => one.balance)).size).toBe(101);
      },
      IN_TIME_MS,
    );

    test("concurrent updates build on each other, and each has a version", async () => {
      const pass = aPass();
      await passes.create(pass);
      const add = (i: number) =>
        (i % 2 === 0 ? passes : others).update("acme", {
          ...anUpdate(pass.passId, { notificationKind: "match.upcoming", notifyMessage: `n${i}` }),
          change: ({ content }) =>
            content.type === "apple" ? { ...content, pass: { ...content.pass, [`k${i}`]: i } } : content,
        });
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => add(i)));
      const versions = answers.map((answer) => (answer !== null && "version" in answer ? answer.version : 0));
      expect(versions.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 2));
      const found = await passes.find("acme", pass.passId);
      expect(found?.version).toBe(21);
      expect(Object.keys(found?.content.type === "apple" ? found.content.pass : {})).toHaveLength(23);
      const history = await here.db.execute(`select * from pass_versions where pass_id = '${pass.passId}'`);
      expect(JSON.stringify(history).match(/match\.upcoming/g)).toHaveLength(20);
    });

    test("of a pass's versions the latest are kept", async () => {
      const pass = aPass({ content: google, images: new Map() });
      await passes.create(pass);
      const keep = walletLimits.passVersionsKept;
      for (let version = 2; version <= 2 * keep + 1; version += 1) await passes.update("acme", anUpdate(pass.passId));
      const rows = await here.db
        .select({ version: passVersions.version })
        .from(passVersions)
        .where(eq(passVersions.passId, pass.passId));
      const versions = rows.map(({ version }) => version).sort((a, b) => a - b);
      expect(versions).toEqual(Array.from({ length: keep + 1 }, (_, i) => keep + 1 + i));
    });

    test("an update that is refused while it is made changes nothing, nor does a stranger's", async () => {
      const pass = aPass();
      await passes.create(pass);
      const refused = anUpdate(pass.passId, { change: () => ({ why: "no" }) });
      expect(await passes.update("acme", refused)).toEqual({ why: "no" });
      expect(await passes.update("globex", anUpdate(pass.passId))).toBeNull();
      expect(await passes.find("acme", pass.passId)).toMatchObject({ version: 1 });
    });

    test("the bundle of the latest version is kept, byte by byte, and each is a second newer than the one before", async () => {
      const pass = aPass();
      await passes.create(pass);
      expect(await passes.bundle(pass.passId)).toBeNull();
      const bytes = crypto.getRandomValues(new Uint8Array(100_000));
      const one = await passes.putBundle(pass.passId, 2, bytes);
      if (one === null) throw new Error("there is no such pass");
      expect(await others.bundle(pass.passId)).toEqual({ version: 2, bytes, modifiedAt: one.modifiedAt });
      expect(await others.putBundle(pass.passId, 1, new Uint8Array([1]))).toEqual(one);
      expect(await others.putBundle(pass.passId, 2, new Uint8Array([2]))).toEqual(one);
      const three = await others.putBundle(pass.passId, 3, new Uint8Array([3]));
      const four = await passes.putBundle(pass.passId, 4, new Uint8Array([4]));
      expect(three?.modifiedAt).toBeGreaterThan(one.modifiedAt);
      expect(four?.modifiedAt).toBeGreaterThan(three?.modifiedAt ?? Number.POSITIVE_INFINITY);
      expect(await passes.putBundle("pass-unknown", 1, new Uint8Array([1]))).toBeNull();
    });

    test("bundles of one pass type that are stored at the same time get different tags", async () => {
      const all = Array.from({ length: 10 }, () => aPass({ passTypeId: "pass.test.tags" }));
      for (const pass of all) await passes.create(pass);
      await Promise.all(
        all.map(({ passId }, i) => (i % 2 === 0 ? passes : others).putBundle(passId, 1, new Uint8Array([i]))),
      );
      const rows = await here.db.execute("select update_tag from passes where pass_type_id = 'pass.test.tags'");
      const tags = JSON.stringify(rows).match(/update_tag":"?\d+/g) ?? [];
      expect(new Set(tags).size).toBe(10);
    });

    test("a tag is never behind the time, also of a registry that was restored from long ago", async () => {
      const readTag = async (passId: string) => {
        const rows = await here.db.execute(sql`select update_tag from passes where id = ${passId}`);
        return Number(/update_tag":"?(\d+)/.exec(JSON.stringify(rows))?.[1]);
      };
      const pass = aPass({ passTypeId: "pass.test.restored" });
      await passes.create(pass);
      await here.db.execute("insert into pass_types values ('pass.test.restored', 7)");
      const beforeMs = Date.now();
      await passes.putBundle(pass.passId, 1, new Uint8Array([1]));
      const first = await readTag(pass.passId);
      expect(first).toBeGreaterThanOrEqual(beforeMs);
      // A clock that was set back moves no tag back.
      await here.db.execute(sql`update pass_types set last_tag = ${first + 3_600_000}`);
      await passes.putBundle(pass.passId, 2, new Uint8Array([2]));
      expect(await readTag(pass.passId)).toBe(first + 3_600_001);
    });

    test("passes whose first job has not ended are found by their age, also where many are of one moment", async () => {
      const [open, done, undone] = [aPass(), aPass(), aPass()];
      for (const pass of [open, done, undone]) await passes.create(pass);
      await passes.finishCreate(done.passId);
      await passes.undoCreate("acme", undone.jobId);
      expect(await passes.unfinished(Date.now() - 3_600_000, null)).toEqual([]);
      const unfinished = async () => {
        const found: UnfinishedPass[] = [];
        for (let last: UnfinishedPass | null = null; ; last = found.at(-1) ?? null) {
          const page = await passes.unfinished(Date.now() + 1_000, last);
          if (page.length === 0) break;
          found.push(...page);
        }
        return found.map(({ passId }) => passId);
      };
      const found = await unfinished();
      expect(found).toContain(open.passId);
      expect(found).not.toContain(done.passId);
      expect(found).not.toContain(undone.passId);
      expect(found.length).toBeGreaterThan(100);
      expect(new Set(found).size).toBe(found.length);
      await here.db.execute("update passes set created_at = date_trunc('second', now())");
      const ofOneMoment = await unfinished();
      expect(ofOneMoment.toSorted()).toEqual(found.toSorted());
    });
  });
}
