import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { TransportError, UnavailableError } from "../../../src/domain/errors.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
import { WalletFront } from "../../http/support/wallet-front.ts";
import { must } from "../../support/must.ts";

const SLOW_MS = 60_000;
let world: WalletFront;
beforeAll(async () => {
  world = await WalletFront.start();
}, SLOW_MS);
afterAll(() => world?.stop(), SLOW_MS);
afterEach(() => {
  world.front.queue.failure = null;
});

let serials = 0;
const apple = (data: object = {}) => {
  serials += 1;
  const required = { serial_number: `s-${serials}`, organization_name: "Acme", description: "A pass" };
  return { pass_type: "apple", pass_data: { ...required, ...data } };
};
const google = (data: object = {}) => {
  serials += 1;
  return {
    pass_type: "google",
    pass_data: { class_id: "33.c", object_id: `33.o-${serials}`, object_data: {}, ...data },
  };
};
/** In base64, with random bytes in place of pixels. */
const png = (bytes: number) => {
  const image = Buffer.from(crypto.getRandomValues(new Uint8Array(65_536)));
  const whole = Buffer.concat([
    Buffer.from("89504e470d0a1a0a0000000d494844520000001d0000001d", "hex"),
    ...Array.from({ length: Math.floor(bytes / image.length) }, () => image),
    Buffer.from("0000000049454e44ae426082", "hex"),
  ]);
  return whole.toString("base64");
};
const create = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  world.front.post("/v1/passes/create", body, headers);
const put = (id: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  world.front.fetch(`/v1/passes/${id}`, {
    method: "PUT",
    headers: { "X-API-Key": world.front.apiKey, "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
const asKey = (apiKey: string) => ({ "X-API-Key": apiKey });
async function tenant(id: string, tokens = 10): Promise<string> {
  await must(world.registry.registry.createTenant({ id, name: id, plan: "pro", tokens }));
  return (await must(world.registry.registry.createKey(id))).api_key;
}

describe("a pass", () => {
  test("is stored, paid for and queued, on either route", async () => {
    for (const path of ["/v1/send/wallet", "/v1/passes/create"]) {
      for (const body of [apple(), google()]) {
        const before = await world.balance();
        const answer = await world.front.post(path, body);
        expect([answer.status, answer.body]).toEqual([202, { job_id: world.lastJob.jobId, status: "pending" }]);
        expect(await world.balance()).toBe(before - 1);
        const pass = await world.lastPass();
        expect(pass).toMatchObject({ state: "creating", version: 1, jobId: world.lastJob.jobId });
        expect(world.lastJob).toMatchObject({ channel: "wallet", idempotency: null });
        expect(world.lastJob).not.toHaveProperty("template");
        expect(JSON.parse(world.lastJob.payload)).toEqual({ action: "create", passId: pass.passId, version: 1 });
      }
    }
  });

  test("of Apple's has a token of 32 characters and the signer's pass type, and one of Google's the kind of its route", async () => {
    await create(apple());
    const one = await world.lastPass();
    expect(one.passTypeId).toBe("pass.test.platform");
    expect(one.authenticationToken).toMatch(/^[\w-]{32}$/);
    await create(google());
    expect((await world.lastPass()).content).toMatchObject({ kind: "eventTicket" });
    await world.front.post("/v1/send/wallet", google());
    expect((await world.lastPass()).content).toMatchObject({ kind: "generic" });
  });

  test("has the platform's colours if the request gives none", async () => {
    const colours = async () => {
      const { content } = await world.lastPass();
      return content.type === "apple" ? content.pass : content.object;
    };
    await create(apple());
    const white = "rgb(255, 255, 255)";
    const design = { backgroundColor: "rgb(11, 31, 58)", foregroundColor: white, labelColor: white };
    expect(await colours()).toMatchObject(design);
    await world.front.post("/v1/send/wallet", google());
    expect(await colours()).toMatchObject({ hexBackgroundColor: "#1A56DB" });
    await world.front.post("/v1/send/wallet", google({ object_data: { hexBackgroundColor: "#22C55E" } }));
    expect(await colours()).toMatchObject({ hexBackgroundColor: "#22C55E" });
    // That of an event ticket is its class's.
    await create(google());
    expect(await colours()).not.toHaveProperty("hexBackgroundColor");
  });

  test("shows its file or link in its job's result, although the job holds neither", async () => {
    const { body } = await create(apple());
    const pass = await world.deliverLast();
    const job = await world.front.request("GET", `/v1/jobs/${String(body["job_id"])}`);
    const pkpass_base64 = Buffer.from("bundle 1").toString("base64");
    expect(job.body).toMatchObject({ status: "success", result: { pass_id: pass.passId, pkpass_base64 } });
    const second = await create(google());
    const other = await world.deliverLast();
    const result = (await world.front.request("GET", `/v1/jobs/${String(second.body["job_id"])}`)).body["result"];
    expect(result).toEqual({ pass_id: other.passId, save_link: `https://save.test/${other.serial}` });
  });
});

describe("the order of the checks", () => {
  test("is 401, 429, 403, 400, 402, 500, and each request counts once", async () => {
    const key = await tenant("ordered", 0);
    await must(world.registry.registry.changeTenant("ordered", { channels: ["email"] }));
    expect((await create({}, asKey("wrong"))).status).toBe(401);
    const { counted } = world.front.queue;
    expect((await create("{", asKey(key))).status).toBe(403);
    await must(world.registry.registry.changeTenant("ordered", { channels: ["wallet"] }));
    expect((await create("{", asKey(key))).status).toBe(400);
    expect((await create(apple(), asKey(key))).status).toBe(402);
    expect(world.front.queue.counted).toBe(counted + 3);
    await must(
      world.registry.registry.putPlan({
        name: "none",
        requestsPerMinute: 1,
        deliveriesPerSecond: null,
        ...QUEUE_SHARE,
      }),
    );
    await must(world.registry.registry.changeTenant("ordered", { plan: "none", channels: ["email"] }));
    const limited = await create("{", asKey(key));
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "17"]);
  });

  test("a tenant without passes gets 403 on every route of theirs", async () => {
    const key = await tenant("mailer");
    await must(world.registry.registry.changeTenant("mailer", { channels: ["email"] }));
    const id = "01936f2e-7c1a-7c44-8b1e-6d0f2a9be310";
    for (const [method, path] of [
      ["POST", "/v1/send/wallet"],
      ["POST", "/v1/passes/create"],
      ["PUT", `/v1/passes/${id}`],
      ["GET", `/v1/passes/${id}/download`],
      ["GET", `/v1/passes/${id}/status`],
    ] as const) {
      const answer = await world.front.request(method, path, asKey(key));
      expect([path, answer.status]).toEqual([path, 403]);
    }
  });
});

test("a notification beside an update of an Apple pass is refused, because nobody would see it", async () => {
  await create(apple());
  const { passId } = await world.deliverLast();
  const queued = world.front.queue.queued.length;
  const answer = await put(passId, { pass_data: { description: "New" }, notify_message: "Look" });
  expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining("changeMessage")]);
  expect(world.front.queue.queued).toHaveLength(queued);
  expect((await put(passId, { pass_data: { description: "New" }, notification_kind: null })).status).toBe(202);
  expect((await put(passId, { pass_data: { description: "New" }, silent: true })).status).toBe(400);
});

test.each([
  ["POST", "/v1/send/email"],
  ["POST", "/v1/send/whatsapp"],
  ["POST", "/v1/send/wallet"],
  ["POST", "/v1/passes/create"],
  ["PUT", "/v1/passes/019bbef3-b000-720f-bab2-8567773d8dba"],
  ["GET", "/v1/passes/019bbef3-b000-720f-bab2-8567773d8dba/status"],
  ["GET", "/v1/passes/019bbef3-b000-720f-bab2-8567773d8dba/download"],
  ["GET", "/v1/jobs/019bbef3-b000-720f-bab2-8567773d8dba"],
  ["GET", "/v1/jobs/019bbef3-b000-720f-bab2-8567773d8dba/events"],
  ["GET", "/v1/events"],
  ["POST", "/v1/google/classes"],
  ["PUT", "/v1/google/classes/33.c"],
  ["GET", "/v1/google/classes/33.c"],
  ["GET", "/v1/domains"],
  ["GET", "/v1/domains/acme.example"],
  ["POST", "/v1/domains/acme.example/verify"],
])("%s %s refuses a query parameter that nobody knows", async (method, path) => {
  const answer = await world.front.fetch(`${path}?nobody_knows=1`, {
    method,
    headers: { "X-API-Key": world.front.apiKey, "content-type": "application/json" },
    ...(method === "GET" ? null : { body: "{}" }),
  });
  expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining('"nobody_knows" is unknown')]);
});

describe("a refused pass costs nothing, and its sentence names the field", () => {
  const base64 = (bytes: number) => Buffer.alloc(bytes, 1).toString("base64");
  test.each<[string, unknown, string]>([
    ["no type", { pass_data: {} }, "pass_type must be apple or google"],
    ["an unknown type", { ...apple(), pass_type: "samsung" }, "pass_type must be apple or google"],
    ["no data", { pass_type: "apple" }, "pass_data is required"],
    ["null data", { pass_type: "apple", pass_data: null }, "pass_data is required"],
    ["a list for data", { pass_type: "apple", pass_data: [] }, "pass_data must be an object"],
    ["a list", [], "the body must be a JSON object"],
    ["no serial", apple({ serial_number: "" }), "pass_data.serial_number is required"],
    ["an unknown style", apple({ style: "card" }), "pass_data.style must be one of eventTicket, boardingPass,"],
    ["what is no base64", apple({ icon_base64: "%%%" }), "pass_data.icon_base64 is not valid base64"],
    ["what is no PNG", apple({ logo_2x_base64: base64(99) }), "pass_data.logo_2x_base64 is not a PNG image"],
    ["9 MB", apple({ strip_base64: base64(6_900_000) }), "pass_data.strip_base64 must not be larger than 2097152"],
    [
      "images of 4.5 MB together",
      apple({ icon_base64: png(1_500_000), logo_base64: png(1_500_000), strip_base64: png(1_500_000) }),
      "pass_data must not have images of more than 4194304 bytes together",
    ],
    [
      "a key twice",
      apple({ back_fields: [{ key: "a", value: "" }], header_fields: [{ key: "a", value: "" }] }),
      "pass_data.back_fields[0].key must be unique in the whole pass",
    ],
    ["another issuer", google({ class_id: "44.c" }), "pass_data.class_id must begin with 33."],
    ["an issuer that begins alike", google({ object_id: "338.o" }), "pass_data.object_id must begin with 33."],
    ["a Google pass that says nothing", google({ object_data: undefined }), "pass_data.object_data is required"],
    ["a Google pass of null", google({ object_data: null }), "pass_data.object_data is required"],
    ["a member that nobody knows", { ...apple(), style: "coupon" }, "style is not a member of this request"],
    ["a contradiction", google({ object_data: { id: "33.x" } }), "pass_data.object_data.id must be the object_id"],
    [
      "a contradiction in another spelling",
      google({ object_data: { class_id: "33.theirs" } }),
      "pass_data.object_data.class_id must be left out",
    ],
    ["a link that is no list", google({ object_data: { linkedObjectIds: "33.x" } }), "linkedObjectIds must be a list"],
    [
      "a link to nothing",
      google({ object_data: { linkedOfferIds: [7] } }),
      "linkedOfferIds[0] must be the id of an object",
    ],
    ["an unknown template", { template_id: "no-such" }, 'there is no wallet template with the template_id "no-such"'],
  ])("%s", async (_case, body, error) => {
    const [before, queued] = [await world.balance(), world.front.queue.queued.length];
    const answer = await create(body);
    expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining(error)]);
    expect([await world.balance(), world.front.queue.queued.length]).toEqual([before, queued]);
  });

  test("an update whose images and those that the pass keeps are more than 4 MiB together", async () => {
    await create(apple({ icon_base64: png(1_500_000), logo_base64: png(1_400_000) }));
    const { passId } = await world.deliverLast();
    const answer = await put(passId, { pass_data: { strip_base64: png(1_500_000) } });
    expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining("4194304 bytes together")]);
    expect((await put(passId, { pass_data: { strip_base64: png(1_500_000), logo_base64: null } })).status).toBe(202);
    await world.deliverLast();
  });

  test("a Google pass of a class that another tenant owns", async () => {
    const body = google({ class_id: "33.theirs" });
    await tenant("owner");
    await world.registry.googleClasses.claim("33.theirs", "owner");
    for (const path of ["/v1/passes/create", "/v1/send/wallet"]) {
      const [before, queued] = [await world.balance(), world.front.queue.queued.length];
      const answer = await world.front.post(path, body);
      expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining("another tenant's")]);
      expect([await world.balance(), world.front.queue.queued.length]).toEqual([before, queued]);
    }
    await world.registry.googleClasses.claim("33.mine", "acme");
    expect((await create(google({ class_id: "33.mine" }))).status).toBe(202);
    // Requesting a pass does not claim the class: its job may fail.
    await create(google({ class_id: "33.nobodys" }));
    expect(await world.registry.googleClasses.findOwner("33.nobodys")).toBeNull();
  });

  test("a Google pass that is linked to another tenant's, also by an update", async () => {
    const theirs = google();
    expect((await create(theirs, asKey(await tenant("neighbour")))).status).toBe(202);
    const linkedObjectIds = [theirs.pass_data.object_id];
    for (const links of [{ linkedObjectIds }, { linked_object_ids: linkedObjectIds }]) {
      const [before, queued] = [await world.balance(), world.front.queue.queued.length];
      const answer = await create(google({ object_data: links }));
      expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining("no pass of yours")]);
      expect([await world.balance(), world.front.queue.queued.length]).toEqual([before, queued]);
    }
    const mine = google();
    await create(mine);
    const { passId } = await world.deliverLast();
    expect((await put(passId, { pass_data: { linkedObjectIds } })).status).toBe(400);
    expect((await put(passId, { pass_data: { linkedObjectIds: [mine.pass_data.object_id] } })).status).toBe(202);
    expect((await create(google({ object_data: { linkedObjectIds: [mine.pass_data.object_id] } }))).status).toBe(202);
  });

  test("a serial that was used", async () => {
    const body = apple();
    await create(body);
    const before = await world.balance();
    const again = await create(body);
    expect([again.status, again.body["error"]]).toEqual([
      400,
      expect.stringContaining("serial_number was used before"),
    ]);
    expect(await world.balance()).toBe(before);
    expect((await create(body, asKey(await tenant("other")))).status).toBe(202);
  });
});

describe("when the queue fails", () => {
  test("a pass that was certainly not queued is undone and its serial freed; one that may have been queued is kept", async () => {
    const { passes } = world.registry;
    const before = await world.balance();
    const body = apple();
    const failOn = (failure: Error) => {
      const accept = world.front.queue.accept.bind(world.front.queue);
      world.front.queue.accept = async () => {
        world.front.queue.accept = accept;
        throw failure;
      };
    };
    failOn(new UnavailableError("full"));
    expect((await create(body)).status).toBe(500);
    expect(await world.balance()).toBe(before);
    failOn(new TransportError("lost"));
    const lost = await create(body);
    expect([lost.status, lost.body["error"]]).toEqual([500, expect.stringContaining("not known whether")]);
    expect(await world.balance()).toBe(before - 1);
    const left = await passes.unfinished(Date.now() + 1_000, null);
    expect(left.length).toBeGreaterThan(0);
  });
});

describe("an update", () => {
  test("is merged by key, numbered and queued, and costs nothing", async () => {
    await create(apple({ back_fields: [{ key: "a", value: "1", label: "A" }], logo_text: "Old" }));
    const { passId } = await world.deliverLast();
    const before = await world.balance();
    const answer = await put(passId, {
      pass_data: {
        backFields: [
          { key: "a", value: "2" },
          { key: "b", value: 3 },
        ],
        logo_text: null,
      },
      notification_kind: "match.upcoming",
    });
    expect([answer.status, answer.body]).toEqual([
      202,
      { pass_id: passId, job_id: world.lastJob.jobId, status: "updating" },
    ]);
    expect(JSON.parse(world.lastJob.payload)).toEqual({ action: "update", passId, version: 2 });
    const { content, version } = await world.lastPass();
    expect(version).toBe(2);
    expect(content).toMatchObject({
      pass: {
        generic: {
          backFields: [
            { key: "a", value: "2", label: "A" },
            { key: "b", value: 3 },
          ],
        },
      },
    });
    expect(JSON.stringify(content)).not.toContain("Old");
    expect(await world.balance()).toBe(before);
  });

  test("under an Idempotency-Key is made once, and its repeat has the same answer", async () => {
    await create(apple());
    const { passId } = await world.deliverLast();
    const key = { "Idempotency-Key": `update-${passId}` };
    const body = { pass_data: { logo_text: "New" } };
    const first = await put(passId, body, key);
    const again = await put(passId, body, key);
    expect([again.status, again.body]).toEqual([202, first.body]);
    expect([first, again].map(({ headers }) => headers.get("idempotency-replayed"))).toEqual([null, "true"]);
    expect((await world.lastPass()).version).toBe(2);
    const other = await put(passId, { pass_data: { logo_text: "Other" } }, key);
    expect([other.status, (await world.lastPass()).version]).toEqual([422, 2]);
    expect((await put(passId, { pass_data: 5 }, key)).status).toBe(400);
    expect((await put(passId, body, { "Idempotency-Key": "" })).status).toBe(400);
  });

  test("takes the barcodes away by null for either of their members", async () => {
    for (const member of ["barcode", "barcodes"]) {
      await create(apple({ barcodes: [{ message: "a pass's code", format: "PKBarcodeFormatQR" }] }));
      const { passId } = await world.deliverLast();
      expect((await put(passId, { pass_data: { [member]: null } })).status).toBe(202);
      expect((await world.lastPass()).content).not.toHaveProperty("pass.barcodes");
    }
  });

  test("of a Google pass merges modules by id and carries its message", async () => {
    await create(
      google({
        object_data: {
          textModulesData: [
            { id: "a", body: "1" },
            { id: "b", body: "2" },
          ],
        },
      }),
    );
    const { passId } = await world.deliverLast();
    const changes = { textModulesData: [{ id: "b", body: "3" }], notify_message: "Look" };
    expect((await put(passId, { pass_data: changes })).status).toBe(202);
    expect(JSON.parse(world.lastJob.payload)).toMatchObject({ version: 2, notifyMessage: "Look" });
    expect((await world.lastPass()).content).toMatchObject({
      object: {
        textModulesData: [
          { id: "a", body: "1" },
          { id: "b", body: "3" },
        ],
      },
    });
  });

  test("is refused where it is malformed, would make the pass invalid, or is a stranger's", async () => {
    await create(apple());
    const { passId } = await world.deliverLast();
    for (const [body, error] of [
      [{}, "pass_data is required"],
      [{ pass_data: { style: "x" } }, "pass_data.style must be one of"],
      [{ pass_data: { serial_number: "other" } }, "pass_data.serial_number cannot be changed"],
      [{ pass_data: { description: null } }, "pass_data.description is required"],
      [{ pass_data: {}, notification_kind: "x" }, "notification_kind must be one of match.upcoming"],
    ] as const) {
      const answer = await put(passId, body);
      expect([answer.status, answer.body["error"]]).toEqual([400, expect.stringContaining(error)]);
    }
    const key = await tenant("stranger");
    const headers = { "X-API-Key": key, "Content-Type": "application/json" };
    const answer = await world.front.fetch(`/v1/passes/${passId}`, {
      method: "PUT",
      headers,
      body: '{"pass_data":{}}',
    });
    expect(answer.status).toBe(404);
    expect((await world.registry.passes.find("acme", passId))?.version).toBe(1);
  });
});

describe("a pass that is asked for", () => {
  test("is the file of its latest version; a Google pass or another tenant's is 404", async () => {
    await create(apple());
    const { passId } = await world.deliverLast();
    await put(passId, { pass_data: { logo_text: "x" } });
    const file = await world.front.request("GET", `/v1/passes/${passId}/download`);
    expect([file.status, file.text]).toEqual([200, "bundle 2"]);
    expect(file.headers.get("content-type")).toBe("application/vnd.apple.pkpass");
    expect(file.headers.get("last-modified")).toEndWith("GMT");
    expect(file.headers.get("cache-control")).toBe("private, no-store");
    const stranger = asKey(await tenant("curious"));
    expect((await world.front.request("GET", `/v1/passes/${passId}/download`, stranger)).status).toBe(404);
    expect((await world.front.request("GET", `/v1/passes/${passId}/status`, stranger)).status).toBe(404);
    await create(google());
    const other = await world.deliverLast();
    expect((await world.front.request("GET", `/v1/passes/${other.passId}/download`)).status).toBe(404);
    expect((await world.front.request("GET", "/v1/passes/nonsense/status")).status).toBe(404);
  });

  test("says its version, whether it is valid, and on how many devices it is", async () => {
    await create(apple());
    const { passId } = await world.deliverLast();
    const status = async () => (await world.front.request("GET", `/v1/passes/${passId}/status`)).body;
    const active = { pass_id: passId, pass_type: "apple", status: "active", installed_devices: 0, is_installed: false };
    expect(await status()).toEqual({ ...active, version: 1 });
    const registration = { deviceId: "d", pushToken: "t", passId, passTypeId: "pass.test.platform" };
    await world.registry.devices.register(registration);
    await put(passId, { pass_data: { expiration_date: "2020-01-01T00:00:00Z" } });
    const installed = { installed_devices: 1, is_installed: true };
    expect(await status()).toEqual({ ...active, ...installed, version: 2, status: "expired" });
    await put(passId, { pass_data: { voided: true } });
    expect(await status()).toMatchObject({ status: "voided", version: 3 });
    await create(google());
    const other = await world.deliverLast();
    expect((await world.front.request("GET", `/v1/passes/${other.passId}/status`)).body).toEqual({
      pass_id: other.passId,
      pass_type: "google",
      version: 1,
      status: "active",
      google_status: "ACTIVE",
      has_users: true,
      is_installed: true,
    });
  });
});

describe("operators", () => {
  const pem = () =>
    generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();

  test("store templates, which requests lay their own data over", async () => {
    const template = {
      channel: "wallet",
      pass_type: "apple",
      style: "eventTicket",
      pass_data: {
        organization_name: "Acme",
        description: "Ticket",
        label_color: "#22C55E",
        header_fields: [{ key: "gate", label: "Gate", value: "A" }],
      },
    };
    const stored = await world.front.operate("PUT", "/tenants/acme/templates/ticket", template);
    expect([stored.status, stored.body]).toEqual([200, { slug: "ticket", ...template }]);
    await world.front.operate("PUT", "/tenants/acme/templates/mail", { channel: "email", subject: "s", html: "h" });
    const { body } = await world.front.operate("GET", "/tenants/acme/templates");
    expect(body["templates"]).toMatchObject([
      { slug: "mail" },
      { slug: "ticket", channel: "wallet" },
      { slug: "welcome" },
    ]);
    const data = { serial_number: "t-1", description: "Mine", header_fields: [{ key: "gate", value: "B" }] };
    expect((await create({ template_id: "ticket", pass_data: data })).status).toBe(202);
    expect(world.lastJob.template).toBe("ticket");
    expect((await world.lastPass()).content).toMatchObject({
      style: "eventTicket",
      pass: {
        organizationName: "Acme",
        description: "Mine",
        labelColor: "rgb(34, 197, 94)",
        eventTicket: { headerFields: [{ key: "gate", label: "Gate", value: "B" }] },
      },
    });
    const other = await create({ template_id: "ticket", pass_type: "google", pass_data: {} });
    expect([other.status, other.body["error"]]).toEqual([400, expect.stringContaining("pass_type must be apple")]);
    expect((await create({ template_id: "mail" })).status).toBe(400);
    const broken = { ...template, pass_data: { label_color: "green" } };
    const refused = await world.front.operate("PUT", "/tenants/acme/templates/broken", broken);
    expect([refused.status, refused.body["error"]]).toEqual([400, expect.stringContaining("pass_data.label_color")]);
    expect((await world.front.operate("DELETE", "/tenants/acme/templates/ticket")).status).toBe(204);
  });

  test("set a tenant's own credentials, which are checked, sealed, and used where the tenant may", async () => {
    const key = await tenant("own");
    const signer = {
      certificate_pem: "-----BEGIN CERTIFICATE-----",
      private_key_pem: "-----BEGIN PRIVATE KEY-----",
      wwdr_pem: "-----BEGIN CERTIFICATE-----",
      pass_type_id: "pass.test.own",
      team_id: "A1B2C3D4E5",
    };
    const path = "/tenants/own/credentials/apple";
    const refused = await world.front.operate("PUT", path, { ...signer, team_id: "ZZZZZZZZZZ" });
    expect([refused.status, refused.body["error"]]).toEqual([400, "the certificate is for another team"]);
    expect((await world.front.operate("PUT", path, { ...signer, team_id: "short" })).status).toBe(400);
    const stored = await world.front.operate("PUT", path, signer);
    const reason = "stored, not used because the tenant's allow_custom does not name wallet";
    expect([stored.status, stored.body]).toEqual([200, { stored: true, used: false, reason }]);
    const { wwdr_pem: _, ...alone } = signer;
    const warned = await world.front.operate("PUT", path, alone);
    expect([warned.status, warned.body]).toEqual([
      200,
      { stored: true, used: false, reason, warnings: [expect.any(String)] },
    ]);
    const account = { client_email: "a@b.test", private_key: pem().replaceAll("\n", "\\n") };
    const google = { service_account: account, issuer_id: "77" };
    expect((await world.front.operate("PUT", "/tenants/own/credentials/google", google)).status).toBe(200);
    expect((await world.registry.directory.byId("own"))?.wallet).toMatchObject({ apple: null, google: null });
    await must(world.registry.registry.changeTenant("own", { allow_custom: ["wallet"] }));
    const { apple: own, google: issuer } = (await world.registry.directory.byId("own"))?.wallet ?? {};
    expect(own).toMatchObject({ passTypeId: "pass.test.own", wwdrPem: null });
    expect(issuer).toMatchObject({ issuerId: "77", clientEmail: "a@b.test" });
    expect(issuer?.privateKeyPem).toContain("\n");
    const shown = await world.front.operate("GET", "/tenants/own/credentials");
    expect(shown.body).toMatchObject({
      credentials: [
        { kind: "apple", pass_type_id: "pass.test.own", team_id: "A1B2C3D4E5", used: true, reason: null },
        { kind: "google", issuer_id: "77", client_email: "a@b.test", expires_at: null, used: true },
      ],
    });
    for (const part of ["BEGIN", account.private_key.slice(40, 80)]) expect(shown.text).not.toContain(part);
    expect((await create(apple(), asKey(key))).status).toBe(202);
    const pass = await world.registry.passes.find("own", String(JSON.parse(world.lastJob.payload).passId));
    expect(pass?.passTypeId).toBe("pass.test.own");
    const text = { service_account: JSON.stringify(account), issuer_id: "77" };
    expect((await world.front.operate("PUT", "/tenants/own/credentials/google", text)).status).toBe(200);
    for (const service_account of [{}, "no", { ...account, private_key: "x" }, { ...account, client_email: "x" }]) {
      const wrong = { ...google, service_account };
      expect((await world.front.operate("PUT", "/tenants/own/credentials/google", wrong)).status).toBe(400);
    }
    // One digit more than the id of a class may begin with.
    const long = { ...google, issuer_id: "1".repeat(21) };
    expect((await world.front.operate("PUT", "/tenants/own/credentials/google", long)).status).toBe(400);
  });

  test("set where a tenant hears of its devices: https, or plain http where the configuration allows it", async () => {
    const set = (url: unknown) =>
      world.front.operate("PUT", "/tenants/acme/wallet-webhook", { wallet_webhook_url: url });
    for (const url of ["https://hooks.example.com/x?y=1", "http://127.0.0.1:8080/hook", null]) {
      const answer = await set(url);
      expect([answer.status, answer.body]).toEqual([200, { wallet_webhook_url: url }]);
      expect((await world.registry.directory.byId("acme"))?.wallet.webhookUrl).toBe(url);
    }
    for (const url of ["http://93.184.216.34/x", "https://10.0.0.1/x", "ftp://example.com", "nonsense", 5]) {
      expect([url, (await set(url)).status]).toEqual([url, 400]);
    }
    expect(
      (await world.front.operate("PUT", "/tenants/nobody/wallet-webhook", { wallet_webhook_url: null })).status,
    ).toBe(404);
  });
});

test(
  "200 passes at once on a balance of 100: exactly 100 are accepted, and the event store adds up",
  async () => {
    const key = await tenant("hundred", 100);
    const answers = await Promise.all(Array.from({ length: 200 }, () => create(apple(), asKey(key))));
    const statuses = answers.map(({ status }) => status);
    expect([
      statuses.filter((status) => status === 202).length,
      statuses.filter((status) => status === 402).length,
    ]).toEqual([100, 100]);
    const { items } = await must(world.registry.registry.tokenMovements("hundred", null, 500));
    expect(items.reduce((sum, { amount }) => sum + amount, 0)).toBe(0);
    expect(items.filter(({ amount }) => amount === -1)).toHaveLength(100);
    expect(new Set(items.map(({ job_id }) => job_id))).toEqual(
      new Set([null, ...answers.flatMap(({ status, body }) => (status === 202 ? [String(body["job_id"])] : []))]),
    );
  },
  SLOW_MS,
);
