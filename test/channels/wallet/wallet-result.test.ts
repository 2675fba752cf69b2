import { expect, test } from "bun:test";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import type { Pass } from "../../../src/channels/wallet/passes.ts";
import { withPass } from "../../../src/channels/wallet/wallet-result.ts";
import { CallTurns } from "../../../src/http/call-turns.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { aTenant } from "../../support/tenants.ts";

const FILE = new Uint8Array([1, 2, 3]);
const POLLS = 20;

function applePass(tenantId: string, passId: string): Pass {
  return {
    passId,
    tenantId,
    serial: passId,
    state: "ready",
    version: 1,
    content: { type: "apple", style: "generic", pass: {}, images: {} },
    passTypeId: "pass.test.acme",
    authenticationToken: "an-authentication-token-of-32-ch",
    jobId: `job of ${passId}`,
  };
}

const jobOf = (tenantId: string, passId: string) =>
  ({
    jobId: `job of ${passId}`,
    tenantId,
    channel: "wallet",
    status: "success",
    attempts: 1,
    result: { pass_id: passId },
    events: [],
  }) as const;

test("a tenant's polls of passes, however many, leave others' to be read at once", async () => {
  const reads: string[] = [];
  const ends: (() => void)[] = [];
  const ports = {
    passes: {
      find: async (tenantId: string, passId: string) => applePass(tenantId, passId),
      bundle: (passId: string) => {
        reads.push(passId);
        return new Promise<{ version: number; bytes: typeof FILE; modifiedAt: number }>((resolve) =>
          ends.push(() => resolve({ version: 1, bytes: FILE, modifiedAt: 1 })),
        );
      },
    },
    bundles: { bundleOf: () => Promise.reject(new Error("it is stored")) },
    saveLinks: { linkOf: () => "" },
    fileLinks: { linkOf: () => ({ url: "", token: "" }) },
    fileTurns: new CallTurns(walletLimits.jobFileReads, new ManualClock()),
  };
  const poll = (tenantId: string, passId: string) =>
    withPass(ports, aTenant({ tenantId }), jobOf(tenantId, passId)).then(({ result }) => result);
  const many = Array.from({ length: POLLS }, (_, n) => poll("acme", `large ${n}`));
  await Bun.sleep(0);
  expect(reads).toEqual(["large 0", "large 1"]);
  const own = poll("globex", "own");
  await Bun.sleep(0);
  expect(reads).toEqual(["large 0", "large 1", "own"]);
  // Each read that ends lets the next one begin.
  for (let n = 0; n <= POLLS; n += 1) {
    ends[n]?.();
    await Bun.sleep(0);
  }
  const file = Buffer.from(FILE).toString("base64");
  expect(await own).toEqual({ pass_id: "own", pkpass_base64: file });
  const results = await Promise.all(many);
  expect(results).toEqual(many.map((_, n) => ({ pass_id: `large ${n}`, pkpass_base64: file })));
});
