import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { recently } from "../../support/recent-days.ts";
import { startWaybill, temporaryHome, type Waybill } from "../../support/waybill.ts";

const HERE = import.meta.dir;
const PAGE = join(HERE, "../../../docs/adding-a-channel.md");

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let key: string;

beforeAll(async () => {
  home = await temporaryHome();
  waybill = await start();
  await waybill.operator("POST", "/tenants", { id: "acme", name: "Acme", channels: ["file"] });
  key = (await waybill.operator("POST", "/tenants/acme/keys")).body.api_key;
});

afterAll(async () => {
  await waybill.stop();
  await home.remove();
});

const start = () => startWaybill(home.path, {}, { preload: [join(HERE, "add-file.ts")] });
const send = (body: unknown) => waybill.request(key, "POST", "/v1/send/file", body);

function finished(jobId: string) {
  return eventually("the job ends", async () => {
    const { body } = await waybill.request(key, "GET", `/v1/jobs/${jobId}`);
    return body.status === "success" ? body : null;
  });
}

test("a message is written to its file, and its history is found", async () => {
  const { status, body } = await send({ name: "greetings", text: "Hello Ada" });
  expect(status).toBe(202);
  expect(await finished(body.job_id)).toMatchObject({ status: "success", result: { file: "greetings.txt" } });
  expect(await readFile(join(home.path, "files/acme/greetings.txt"), "utf8")).toBe("Hello Ada\n");
  const [event] = await eventually("the event is stored", async () => {
    const page = await waybill.request(key, "GET", `/v1/events?${recently()}&channel=file`);
    return page.body.events.length === 1 ? page.body.events : null;
  });
  expect(event).toMatchObject({ job_id: body.job_id, channel: "file", event_type: "sent" });
});

test("a name that is not safe in a path is refused, and so is a tenant without the channel", async () => {
  for (const name of ["", ".", "../x", "a/b", "A", "a.txt", "a\0b", "a".repeat(65), 7]) {
    expect([name, (await send({ name, text: "x" })).status]).toEqual([name, 400]);
  }
  expect((await send({ name: "ok" })).status).toBe(400);
  await waybill.operator("PATCH", "/tenants/acme", { channels: ["email"] });
  await eventually("it is no longer allowed", async () => (await send({ name: "a", text: "x" })).status === 403);
  const widened = await waybill.operator("PATCH", "/tenants/acme", { channels: ["email", "file"] });
  expect(widened.body.channels).toEqual(["email", "file"]);
  expect((await waybill.operator("PATCH", "/tenants/acme", { channels: ["fax"] })).status).toBe(400);
});

test("the API document shows it", async () => {
  const { body } = await waybill.request(key, "GET", "/openapi.json");
  expect(body.paths["/v1/send/file"].post.operationId).toBe("sendFile");
});

test("the page shows this very code, under 200 lines of it", async () => {
  const page = await readFile(PAGE, "utf8");
  const shown = Array.from(page.matchAll(/```ts\n\/\/ src\/channels\/file\/([\w.-]+)\n([^]*?)```/g));
  expect(shown.map(([, name]) => name)).toEqual(["request.ts", "file-channel.ts", "channel.ts"]);
  let lines = 0;
  for (const [, name = "", code = ""] of shown) {
    const source = await readFile(join(HERE, "file", name), "utf8");
    expect(code).toBe(source.replaceAll("../../../../src/", "../../"));
    lines += code.split("\n").length;
  }
  expect(lines).toBeLessThan(200);
});
