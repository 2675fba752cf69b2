import { expect, test } from "bun:test";
import { PLATFORM, WalletFront } from "../../http/support/wallet-front.ts";

const SLOW_MS = 60_000;
const REQUIRED = { organization_name: "Acme", description: "A pass" };
const apple = (serial_number: string) => ({ pass_type: "apple", pass_data: { serial_number, ...REQUIRED } });
const google = (serial: string) => ({
  pass_type: "google",
  pass_data: { class_id: "33.c", object_id: `33.${serial}`, object_data: {} },
});

test(
  "a change without credentials is 400 for what is wrong with it, otherwise 500 that says where they are set",
  async () => {
    let isBare = false;
    const { apple: signer, google: issuer, whatsapp } = PLATFORM;
    const platform = {
      whatsapp,
      get apple() {
        return isBare ? null : signer;
      },
      get google() {
        return isBare ? null : issuer;
      },
    };
    const front = await WalletFront.start(platform);
    try {
      for (const [body, wrong] of [
        [apple("1"), { icon_base64: "%%%" }],
        [apple("2"), { label_color: "green" }],
        [google("3"), { state: "GONE" }],
      ] as const) {
        isBare = false;
        expect((await front.front.post("/v1/passes/create", body)).status).toBe(202);
        const { passId } = await front.deliverLast();
        isBare = true;
        const change = (pass_data: object) =>
          front.front.fetch(`/v1/passes/${passId}`, {
            method: "PUT",
            headers: { "X-API-Key": front.front.apiKey, "Content-Type": "application/json" },
            body: JSON.stringify({ pass_data }),
          });
        expect([wrong, (await change(wrong)).status]).toEqual([wrong, 400]);
        const right = await change({});
        const where = `the channel wallet has no credentials for passes of type ${body.pass_type}`;
        expect([right.status, right.body["error"]]).toEqual([500, expect.stringContaining(where)]);
      }
    } finally {
      await front.stop();
    }
  },
  SLOW_MS,
);

test(
  "without credentials it is 402 for a tenant without tokens, otherwise 500 that says where they are set",
  async () => {
    const bare = await WalletFront.start({ whatsapp: null, apple: null, google: null });
    try {
      for (const body of [apple("1"), google("2")]) {
        const answer = await bare.front.post("/v1/passes/create", body);
        const where = `the channel wallet has no credentials for passes of type ${body.pass_type}`;
        expect([answer.status, answer.body["error"]]).toEqual([500, expect.stringContaining(where)]);
      }
      expect(await bare.balance()).toBe(100_000);
      await bare.registry.registry.addTokens("acme", -100_000, "test");
      expect((await bare.front.post("/v1/passes/create", apple("3"))).status).toBe(402);
      expect((await bare.front.post("/v1/passes/create", { pass_type: "apple" })).status).toBe(400);
    } finally {
      await bare.stop();
    }
  },
  SLOW_MS,
);
