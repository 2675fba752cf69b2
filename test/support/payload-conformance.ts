import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PayloadRef, PayloadStore } from "../../src/domain/jobs/payload-store.ts";
import { eventually } from "./eventually.ts";

interface OpenedStore {
  readonly store: PayloadStore;
  close(): Promise<void>;
}

/** Files have a time that is up to that old, and a database's clock differs little. */
const TICK_MS = 20;

/** The guarantees of every store of large payloads. The tenants acme and globex exist. */
export function payloadConformance(name: string, open: () => Promise<OpenedStore>): void {
  describe(name, () => {
    let opened: OpenedStore;
    let store: PayloadStore;
    let made = 0;
    beforeAll(async () => {
      opened = await open();
      ({ store } = opened);
    }, 300_000);
    afterAll(() => opened?.close());

    const aRef = (tenantId = "acme"): PayloadRef => {
      made += 1;
      return { tenantId, jobId: `019a0000-0000-7000-8000-${String(made).padStart(12, "0")}` };
    };
    const all = async () => (await Array.fromAsync(store.all())).flat();

    test("reads a payload back as it was put, whatever is in it", async () => {
      for (const payload of [new Uint8Array(), Buffer.from("größer 😀\0\n"), new Uint8Array(3_000_000).fill(255)]) {
        const ref = aRef();
        await store.put(ref, payload);
        expect(Buffer.compare((await store.get(ref)) ?? Buffer.from("gone"), payload)).toBe(0);
      }
    });

    test("has no payload that was never put, or that was removed", async () => {
      const ref = aRef();
      expect(await store.get(ref)).toBeNull();
      await store.put(ref, Buffer.from("x"));
      await store.remove(ref);
      await store.remove(ref);
      expect(await store.get(ref)).toBeNull();
      expect((await all()).some(({ jobId }) => jobId === ref.jobId)).toBeFalse();
    });

    test("accepts the same payload twice", async () => {
      const ref = aRef();
      await store.put(ref, Buffer.from("same"));
      await store.put(ref, Buffer.from("same"));
      expect(Buffer.from((await store.get(ref)) ?? []).toString()).toBe("same");
    });

    test("removes what it found only if that was not stored anew since", async () => {
      const ref = aRef();
      const found = async () => {
        const one = (await all()).find(({ jobId }) => jobId === ref.jobId);
        if (one === undefined) throw new Error("it is stored");
        return one;
      };
      await store.put(ref, Buffer.from("former"));
      for (const text of ["anew", "once more", "at the same moment"]) {
        const former = await found();
        expect(Math.abs(former.ageMs)).toBeLessThan(60_000);
        await eventually("a later time", () => Date.now() > former.storedMs + TICK_MS);
        const storing = store.put(ref, Buffer.from(text));
        if (text !== "at the same moment") await storing;
        await Promise.all([store.removeFound(former), storing]);
        expect(Buffer.from((await store.get(ref)) ?? []).toString()).toBe(text);
      }
      const anew = await found();
      await store.removeFound(anew);
      await store.removeFound(anew);
      expect(await store.get(ref)).toBeNull();
    });

    test("lists all payloads, with their tenants", async () => {
      for (const ref of await all()) await store.remove(ref);
      const refs = Array.from({ length: 1_100 }, (_, n) => aRef(n % 2 === 0 ? "acme" : "globex"));
      for (let at = 0; at < refs.length; at += 50) {
        await Promise.all(refs.slice(at, at + 50).map((ref) => store.put(ref, Buffer.from("x"))));
      }
      const listed = (await all()).toSorted((a, b) => (a.jobId < b.jobId ? -1 : 1));
      expect(listed.map(({ jobId, tenantId }) => ({ tenantId, jobId }))).toEqual(refs);
    }, 300_000);
  });
}
