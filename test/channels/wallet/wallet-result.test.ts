import { afterAll, beforeAll, expect, test } from "bun:test";
import { WalletFront } from "../../http/support/wallet-front.ts";
import { eventually } from "../../support/eventually.ts";
import { must } from "../../support/must.ts";

const HOOK_MS = 60_000;
let world: WalletFront;
/** The tenants of files that are being read or signed, or were. */
const begun: string[] = [];
const gate = Promise.withResolvers<void>();

beforeAll(async () => {
  world = await WalletFront.start(undefined, (wallet) => ({
    ...wallet,
    // No bundle is stored, so each file is built.
    passes: Object.create(wallet.passes, { bundle: { value: async () => null } }),
    bundles: {
      async getBundle(pass, tenant) {
        begun.push(tenant.tenantId);
        await gate.promise;
        return wallet.bundles.getBundle(pass, tenant);
      },
    },
  }));
}, HOOK_MS);
afterAll(() => world?.stop(), HOOK_MS);

/** The path of a new pass's file. */
async function newPass(apiKey: string): Promise<string> {
  const pass_data = { serial_number: crypto.randomUUID(), organization_name: "Acme", description: "A pass" };
  const answer = await world.front.post(
    "/v1/passes/create",
    { pass_type: "apple", pass_data },
    { "X-API-Key": apiKey },
  );
  expect(answer.status).toBe(202);
  return `/v1/passes/${JSON.parse(world.lastJob.payload).passId}/download`;
}

test("a tenant that fetches files of passes, or polls their jobs, has two of them read at a time, and others' are read meanwhile", async () => {
  const { registry } = world.registry;
  await must(registry.createTenant({ id: "globex", name: "Globex", plan: "pro", tokens: 10 }));
  const apiKey = (await must(registry.createKey("globex"))).api_key;
  const file = await newPass(world.front.apiKey);
  await world.deliverLast();
  const job = `/v1/jobs/${world.lastJob.jobId}`;
  const other = await newPass(apiKey);

  const own = Array.from({ length: 10 }, (_, n) => world.front.request("GET", n % 2 === 0 ? job : file));
  await eventually("two are read", async () => begun.length === 2);
  const others = world.front.request("GET", other, { "X-API-Key": apiKey });
  await eventually("the other tenant's is read", async () => begun.includes("globex"));
  expect(begun.toSorted()).toEqual(["acme", "acme", "globex"]);

  gate.resolve();
  const answers = await Promise.all([...own, others]);
  expect(answers.map(({ status }) => status)).toEqual(new Array(11).fill(200));
  expect(answers[0]?.body).toMatchObject({ result: { pkpass_base64: Buffer.from("bundle 1").toString("base64") } });
});
