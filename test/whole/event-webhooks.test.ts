import { afterAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { recently } from "../support/recent-days.ts";
import { Undo } from "../support/undo.ts";
import { startWaybill, temporaryHome } from "../support/waybill.ts";
import { isSignedWith, Receiver } from "../webhooks/receiver.ts";

const SLOW_MS = 240_000;
const EMAILS = 40;
const TOLD_BEFORE = 15;
const undo = new Undo();
afterAll(() => undo.run(), SLOW_MS);

test(
  "a server that is killed between a receiver's answer and its note tells every event all the same, in order",
  async () => {
    const home = undo.add(await temporaryHome(), (one) => one.remove());
    const receiver = undo.add(new Receiver(), (one) => one.stop());
    let waybill = await startWaybill(home.path);
    const { demoKey } = waybill;
    undo.add(null, () => waybill.kill());
    const made = await waybill.request(demoKey, "POST", "/v1/webhooks", { url: receiver.url });
    expect(made.status).toBe(201);
    const { webhook_id, secret } = made.body;
    let isKilled = false;
    receiver.reply = async () => {
      if (receiver.calls.length === TOLD_BEFORE) {
        // The receiver has taken it, but that is not stored.
        await waybill.kill();
        // Not before it has ended: until then it holds the folder.
        isKilled = true;
      }
      return new Response(null, { status: 200 });
    };
    const body = { template_id: "welcome", data: { name: "Ann" } };
    const accepted = Array.from({ length: EMAILS }, (_, at) =>
      waybill
        .request(demoKey, "POST", "/v1/send/email", { ...body, to_address: `u${at}@example.com` })
        .then(({ status }) => status === 202)
        .catch(() => false),
    );
    await Promise.all(accepted);
    await eventually("it is killed", () => isKilled, 60_000);
    waybill = await startWaybill(home.path);
    await waybill.request(demoKey, "POST", "/v1/send/email", { ...body, to_address: "last@example.com" });
    const recorded = async (): Promise<readonly number[]> => {
      const page = await waybill.request(demoKey, "GET", `/v1/events?${recently()}&limit=500`);
      return page.body.events.map((event: { event_id: number }) => event.event_id).reverse();
    };
    const told = () => [...new Set(receiver.eventIds)];
    // Both at the same moment, because later there are more.
    const both = await eventually(
      "every event was told",
      async () => {
        const [ids, known] = [await recorded(), told()];
        return ids.length > TOLD_BEFORE && ids.length === known.length ? { ids, known } : null;
      },
      300_000,
    );
    expect(both.known).toEqual([...both.ids]);
    expect(told()).toEqual(told().toSorted((one, other) => one - other));
    expect(receiver.calls.every((call) => isSignedWith(secret, call))).toBe(true);
    const attempts = await waybill.request(demoKey, "GET", `/v1/webhooks/${webhook_id}/attempts`);
    expect(attempts.body.attempts.length).toBeGreaterThan(0);
    expect((await waybill.request(demoKey, "POST", `/v1/webhooks/${webhook_id}/test`)).body).toMatchObject({
      kind: "test",
      delivered: true,
      status: 200,
    });
  },
  SLOW_MS,
);
