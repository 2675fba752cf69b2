import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatLimits } from "../../../src/channels/whatsapp/limits.ts";
import { TransportError } from "../../../src/domain/errors.ts";
import { SHARE_BYTES } from "../../../src/http/body-room.ts";
import { type Answer, Front, WEBHOOK_SECRETS } from "../../http/support/front.ts";
import { RawConnection } from "../../http/support/raw-connection.ts";
import { eventually } from "../../support/eventually.ts";
import { PHONE_NUMBER_ID, signed, status, webhookBody } from "../../support/whatsapp-webhook.ts";

const PATH = "/webhook/whatsapp";
const [SECRET, OLD_SECRET] = WEBHOOK_SECRETS;
const JOB = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 90_000);
beforeEach(() => {
  front.statuses.length = 0;
  front.incoming.length = 0;
  front.parts.length = 0;
  front.statusFailure = null;
  front.queue.counted = 0;
});

function post(text: string | Uint8Array, secret: string = SECRET): Promise<Answer> {
  const { body, signature } = signed(text, secret);
  const headers = { "X-Hub-Signature-256": signature, "Content-Type": "application/json" };
  return front.fetch(PATH, { method: "POST", headers, body });
}

const postJson = (body: unknown) => post(JSON.stringify(body));

describe("the challenge", () => {
  const ask = (query: Readonly<Record<string, string>>) =>
    front.fetch(`${PATH}?${new URLSearchParams(query).toString()}`);
  const right = { "hub.mode": "subscribe", "hub.verify_token": SECRET, "hub.challenge": "1158201444" };

  test.each(["1158201444", "<script>alert(1)</script>", "ñ 👋", "", "a+b%20c"])(
    "%p is given back as it is, as plain text",
    async (challenge) => {
      const answer = await ask({ ...right, "hub.challenge": challenge });
      expect([answer.status, answer.text]).toEqual([200, challenge]);
      expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    },
  );

  test("is answered for each of several secrets, while one is rotated", async () => {
    expect((await ask({ ...right, "hub.verify_token": OLD_SECRET })).status).toBe(200);
  });

  test.each([
    { "hub.verify_token": "wrong" },
    { "hub.verify_token": "" },
    { "hub.verify_token": `${SECRET} ` },
    { "hub.verify_token": `${SECRET},${OLD_SECRET}` },
    { "hub.mode": "unsubscribe" },
    { "hub.mode": "" },
  ])("with %j is 403, and shows nothing of the challenge", async (change) => {
    const answer = await ask({ ...right, ...change });
    expect(answer.status).toBe(403);
    expect(answer.text).not.toContain(right["hub.challenge"]);
  });

  test("without any parameters is 403, without a challenge 400", async () => {
    expect((await front.fetch(PATH)).status).toBe(403);
    expect((await ask({ "hub.mode": "subscribe", "hub.verify_token": SECRET })).status).toBe(400);
  });
});

describe("the signature", () => {
  const body = JSON.stringify(webhookBody({ statuses: [status("wamid.1", "sent")] }));

  test("under any of the secrets is taken, and needs neither a key nor room in a rate window", async () => {
    for (const secret of WEBHOOK_SECRETS) expect((await post(body, secret)).status).toBe(200);
    expect(front.statuses).toHaveLength(2);
    expect(front.queue.counted).toBe(0);
  });

  test("is of the bytes as they came, with the provider's escapes", async () => {
    const escaped = `{"entry":[{"changes":[{"value":{"statuses":[{"id":"wamid.\\u00f1\\/1","status":"sent"}]}}]}]}  `;
    expect((await post(escaped)).status).toBe(200);
    expect(front.statuses.map(({ messageId }) => messageId)).toEqual(["wamid.ñ/1"]);
  });

  const { signature } = signed(body, SECRET);
  const digits = signature.slice("sha256=".length);
  test.each<[string, string | null]>([
    ["none", null],
    ["an empty one", ""],
    ["only its name", "sha256="],
    ["one of another secret", signed(body, "webhook-secret-of-others").signature],
    ["one under an empty secret", `sha256=${new Bun.CryptoHasher("sha256").update(body).digest("hex")}`],
    ["one of another body", signed(`${body} `, SECRET).signature],
    ["one cut short", signature.slice(0, -1)],
    ["one with more behind it", `${signature}0`],
    ["one of another hash's name", `sha1=${digits}`],
    ["one without a name", digits],
    ["one with an altered digit", `sha256=${digits.startsWith("0") ? "1" : "0"}${digits.slice(1)}`],
    ["one that is no hexadecimal number", `sha256=${"z".repeat(64)}`],
    ["the right one in capital digits", `sha256=${digits.toUpperCase()}`],
    ["the right one with one capital digit", signature.replace(/[a-f](?=[^a-f]*$)/, (digit) => digit.toUpperCase())],
    ["the right one under a name in capitals", `SHA256=${digits}`],
    ["the right one with a blank behind the name", `sha256= ${digits}`],
    ["the right one with a no-break space behind it", `${signature}\u00a0`],
    ["the right one, and another behind it", `${signature}, ${signature}`],
  ])("that is %s is 401, and nothing is stored", async (_what, header) => {
    const headers = header === null ? {} : { "X-Hub-Signature-256": header };
    const answer = await front.fetch(PATH, { method: "POST", headers, body });
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toStartWith("Signature ");
    expect(answer.body["error"]).toBeString();
    expect([front.statuses, front.incoming]).toEqual([[], []]);
  });
});

describe("what the provider reports", () => {
  test("is taken out of every entry, change and list, in order and whatever the field is called", async () => {
    const value = (...ids: readonly string[]) => ({ statuses: ids.map((id) => status(id, "delivered")) });
    const answer = await postJson({
      object: "whatsapp_business_account",
      entry: [
        {
          id: "1",
          changes: [
            { field: "messages", value: value("a", "b") },
            { field: "message_reads", value: value("c") },
          ],
        },
        { id: "2", changes: [{ value: value("d") }] },
      ],
    });
    expect([answer.status, answer.body]).toEqual([200, { status: "received" }]);
    expect(front.statuses.map(({ messageId }) => messageId)).toEqual(["a", "b", "c", "d"]);
  });

  test("comes with the number that it is about, and with what was sent along, whatever that is", async () => {
    const texts = [`acme/${JOB}`, "", "x".repeat(5_000), 7, {}, null, undefined];
    const statuses = texts.map((biz_opaque_callback_data) => status("wamid.1", "read", { biz_opaque_callback_data }));
    await postJson(webhookBody({ statuses }));
    const [nobody] = webhookBody({ statuses: statuses.slice(0, 1) }).entry;
    await postJson({
      entry: [{ changes: nobody?.changes.map(({ value }) => ({ value: { ...value, metadata: null } })) }],
    });
    expect(front.statuses.map(({ phoneNumberId, callbackData }) => [phoneNumberId, callbackData])).toEqual([
      ...texts.map((text) => [PHONE_NUMBER_ID, typeof text === "string" ? text : null]),
      [null, `acme/${JOB}`],
    ]);
  });

  test.each<[unknown, string]>([
    [[{ code: 131_026, title: "Message undeliverable" }], "error 131026: Message undeliverable"],
    [[{ code: 1, message: "Oops" }], "error 1: Oops"],
    [
      [{ code: 131_053, title: "Media upload error", error_data: { details: "Too\nlarge\u202e" } }],
      "error 131053: Media upload error; Too large",
    ],
    [[{ code: 9, title: "x".repeat(5_000) }], `error 9: ${"x".repeat(299)}…`],
    [[{ title: "\ud83d" }], "the provider could not deliver the message"],
    [[{ title: "Lost" }], "the provider could not deliver the message: Lost"],
    [[{ code: 5, title: "Undeliverable", error_data: { details: "Undeliverable." } }], "error 5: Undeliverable"],
    [[{}], "the provider could not deliver the message"],
    [[], "the provider could not deliver the message"],
    [undefined, "the provider could not deliver the message"],
    [[{ code: {}, title: [] }], "the provider could not deliver the message"],
  ])("of a failure with the errors %j reads well: %s", async (errors, error) => {
    await postJson(webhookBody({ statuses: [status("wamid.1", "failed", { errors })] }));
    expect(front.statuses.map(({ type, result }) => [type, result])).toEqual([["failed", { error }]]);
  });

  test("of words that are no step of a delivery is left alone, of unknown ones kept", async () => {
    const [unused, unknown] = [
      ["played", "deleted", "warning"],
      ["SENT", "__proto__", ""],
    ];
    const statuses = [...unused, ...unknown].map((word) => status("wamid.1", word));
    expect((await postJson(webhookBody({ statuses }))).status).toBe(200);
    expect(front.statuses).toEqual([]);
    expect<unknown>(front.parts.map(({ what, content }) => ({ what, content }))).toEqual(
      unknown.map((word) => ({ what: "status", content: status("wamid.1", word) })),
    );
  });

  test("of a person without a number tells its id and username, by whichever member names it", async () => {
    const ids = { wa_id: "5491122334455", user_id: "AR.1349", parent_user_id: "AR.ENT.77" };
    const ada = { profile: { name: "Ada", username: "ada.l" }, ...ids };
    const text = { type: "text", text: { body: "Hi" } };
    const wrapContact = (contact: object) => ({ contacts: [contact], messages: [] as object[] });
    const hidden = { profile: ada.profile, user_id: ids.user_id };
    const calls: readonly (readonly [object, object])[] = [
      [hidden, { id: "1", from_user_id: "AR.1349", ...text }],
      [ada, { id: "2", from: "5491122334455", from_user_id: "AR.1349", ...text }],
      [hidden, { id: "3", from: "AR.1349", ...text }],
      [hidden, { id: "4", ...text }],
      [{ user_id: "AR.2" }, { id: "5", from_user_id: "AR.1349", ...text }],
    ];
    for (const [contact, message] of calls) {
      await postJson(webhookBody({ ...wrapContact(contact), messages: [message] }));
    }
    const seen = front.incoming.map(({ message: { id, from, userId, username, name } }) => [
      id,
      from,
      userId,
      username,
      name,
    ]);
    expect(seen).toEqual([
      ["1", null, "AR.1349", "ada.l", "Ada"],
      ["2", "5491122334455", "AR.1349", "ada.l", "Ada"],
      ["3", null, "AR.1349", "ada.l", "Ada"],
      ["4", null, "AR.1349", "ada.l", "Ada"],
      ["5", null, "AR.1349", null, null],
    ]);
    expect(front.incoming[1]?.writer).toMatchObject({ from: "5491122334455", parentUserId: "AR.ENT.77" });
    expect(front.parts).toEqual([]);
  });

  test("of a new number or id is read from the system's message, which may name the person there alone", async () => {
    const system = { type: "user_changed_user_id", user_id: "AR.2", previous_user_id: "AR.1", body: "…" };
    const moved = { type: "user_changed_number", wa_id: "5491199999999", user_id: "AR.3", previous_user_id: "AR.2" };
    const messages = [
      { id: "1", type: "system", timestamp: "1795247400", system },
      { id: "2", type: "system", from: "5491122334455", system: moved },
      { id: "3", type: "system", from: "5491122334455", system: { body: "…", type: "customer_identity_changed" } },
    ];
    await postJson(webhookBody({ contacts: [], messages }));
    expect(front.incoming.map(({ changed }) => changed)).toEqual([
      {
        before: { from: null, userId: "AR.1", parentUserId: null },
        after: { from: null, userId: "AR.2", parentUserId: null },
      },
      {
        before: { from: "5491122334455", userId: "AR.2", parentUserId: null },
        after: { from: "5491199999999", userId: "AR.3", parentUserId: null },
      },
      null,
    ]);
  });

  test("of a name is cut between characters, whatever a character is made of", async () => {
    const family = "👨‍👩‍👧‍👦";
    for (const [name, kept] of [
      [`${"x".repeat(255)}😀`, "x".repeat(255)],
      [`${"x".repeat(250)}${family}y`, "x".repeat(250)],
      [`${"x".repeat(255)}e\u0301`, "x".repeat(255)],
      ["y".repeat(300), "y".repeat(256)],
      [`y${"\u0301".repeat(300)}`, `y${"\u0301".repeat(255)}`],
    ] as const) {
      front.incoming.length = 0;
      const contacts = [{ wa_id: "1", profile: { name } }];
      await postJson(webhookBody({ contacts, messages: [{ id: "1", from: "1", type: "text" }] }));
      expect(front.incoming[0]?.message.name).toBe(kept);
    }
  });

  test("that answers a request for contact data is kept with the contact", async () => {
    const contacts = [
      { name: { formatted_name: "Ada" }, phones: [{ phone: "+5491122334455", wa_id: "5491122334455" }] },
    ];
    const message = { id: "1", from_user_id: "AR.1", type: "contacts", origin: "contact_request", contacts };
    await postJson(webhookBody({ messages: [message] }));
    expect(front.incoming.map(({ message: { type, content } }) => ({ type, content }))).toEqual([
      { type: "contacts", content: message },
    ]);
  });

  test.each<[string, object, string | null, boolean]>([
    ["message_template_status_update", { event: "PAUSED", message_template_name: "a" }, "PAUSED", true],
    ["message_template_status_update", { event: "APPROVED", message_template_name: "a" }, "APPROVED", false],
    ["message_template_quality_update", { new_quality_score: "RED", previous_quality_score: "GREEN" }, "RED", true],
    ["phone_number_quality_update", { event: "FLAGGED", display_phone_number: "15550001111" }, "FLAGGED", true],
    ["phone_number_quality_update", { event: "UPGRADE", display_phone_number: "15550001111" }, "UPGRADE", false],
    ["account_update", { event: "ACCOUNT_RESTRICTION", restriction_info: [] }, "ACCOUNT_RESTRICTION", true],
    ["account_update", { event: "DISABLED_UPDATE", ban_info: { waba_ban_state: "DISABLE" } }, "DISABLED_UPDATE", true],
    [
      "account_update",
      { event: "DISABLED_UPDATE", ban_info: { waba_ban_state: "REINSTATE" } },
      "DISABLED_UPDATE",
      false,
    ],
    ["account_update", { event: "VERIFIED_ACCOUNT" }, "VERIFIED_ACCOUNT", false],
    ["account_alerts", { alert_severity: "CRITICAL", alert_type: "OBA_APPROVED" }, "OBA_APPROVED", true],
    ["account_alerts", { alert_info: { alert_severity: "INFORMATIONAL", alert_type: "X" } }, "X", false],
    ["business_capability_update", { max_daily_conversation_per_phone: 1_000 }, null, false],
  ])("of an account is handed on: %s %j", async (field, value, event, isAlarming) => {
    await postJson({ entry: [{ id: "1022", time: 1_795_247_400, changes: [{ field, value }] }] });
    expect(front.parts).toMatchObject([
      { type: "account.updated", accountId: "1022", atMs: 1_795_247_400_000, field, event, isAlarming, content: value },
    ]);
  });

  test("of errors beside messages is handed on, and the messages are", async () => {
    const errors = [{ code: 131_057, title: "Account in maintenance mode" }];
    await postJson(webhookBody({ errors, messages: [{ id: "1", from: "1", type: "text" }] }));
    expect(front.incoming).toHaveLength(1);
    expect(front.parts).toMatchObject([
      {
        type: "account.updated",
        field: "errors",
        event: "131057",
        isAlarming: true,
        phoneNumberId: PHONE_NUMBER_ID,
        content: { errors },
      },
    ]);
  });

  test("that the queue cannot take now is 500, so that it comes again", async () => {
    front.statusFailure = new TransportError("redis is away");
    const answer = await postJson(webhookBody({ statuses: [status("wamid.1", "sent")] }));
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("redis");
  });

  test("of messages that came in is recorded with who wrote them, to which number, and what", async () => {
    const message = {
      from: "5491122334455",
      id: "wamid.in",
      timestamp: "1795247400",
      type: "text",
      text: { body: "¡Hola!" },
    };
    const unsupported = { from: "1", id: "wamid.un", type: "unsupported", errors: [{ code: 131_051 }] };
    const long = { from: "1", id: "wamid.long", type: "text", text: { body: "x".repeat(9_000) } };
    await postJson(webhookBody({ messages: [message, unsupported, long] }));
    const common = { phoneNumberId: "106540352242922", userId: null, username: null, name: null };
    expect(front.incoming.map((one) => one.message)).toEqual([
      { ...common, id: "wamid.in", from: "5491122334455", name: "Ada", type: "text", content: message },
      { ...common, id: "wamid.un", from: "1", type: "unsupported", content: unsupported },
      { ...common, id: "wamid.long", from: "1", type: "text", content: null },
    ]);
  });
});

describe("bodies of another form", () => {
  test.each<[unknown, readonly unknown[]]>([
    [{ object: "x" }, [{ object: "x" }]],
    [{ entry: null }, [{ entry: null }]],
    [{ entry: {} }, [{ entry: {} }]],
    [{ entry: [null, 5, "x", [], {}] }, [{ entry: [null, 5, "x", []] }, {}]],
    [
      { entry: [{ changes: [null, { value: null }, { value: [] }, {}] }] },
      [{ changes: [null] }, { value: null }, { value: [] }, {}],
    ],
    [{ entry: [{ changes: [{ field: "flows", value: { event: "FLOW" } }] }] }, [{ event: "FLOW" }]],
    [{ entry: [{ changes: [{ value: { statuses: {}, messages: 7 } }] }] }, [{ statuses: {} }, { messages: 7 }]],
    [
      { entry: [{ changes: [{ value: { statuses: [null, 1, {}, { id: 5, status: "sent" }] } }] }] },
      [{ statuses: [null, 1] }, {}, { id: 5, status: "sent" }],
    ],
    [
      {
        entry: [
          { changes: [{ value: { messages: [{ id: "1", type: "text" }], user_preferences: [{ value: "stop" }] } }] },
        ],
      },
      [{ id: "1", type: "text" }, { user_preferences: [{ value: "stop" }] }],
    ],
  ])("are accepted, and each part is kept: %j", async (body, parts) => {
    expect((await postJson(body)).status).toBe(200);
    expect([front.statuses, front.incoming]).toEqual([[], []]);
    expect<unknown>(front.parts.map(({ type, content }) => [type, content])).toEqual(
      parts.map((part) => ["message.unknown", part]),
    );
  });

  test("without anything in them are taken", async () => {
    expect((await postJson({ entry: [] })).status).toBe(200);
    const odd = '{"__proto__":{"entry":[]},"constructor":{"prototype":{}},"entry":[{"__proto__":{"changes":[]}}]}';
    expect((await post(odd)).status).toBe(200);
    expect([front.statuses, front.incoming]).toEqual([[], []]);
  });

  test("of very many unknown parts hand a bounded number on", async () => {
    const statuses = Array.from({ length: 60_000 }, (_, i) => ({ id: `${i}`, status: "x" }));
    expect((await postJson(webhookBody({ statuses }))).status).toBe(200);
    expect(front.parts).toHaveLength(chatLimits.callbackPartsMax);
  });

  test.each<[string, string | Uint8Array]>([
    ["nothing", ""],
    ["no JSON", "entry=1"],
    ["half of it", '{"entry":['],
    ["null", "null"],
    ["a list", "[]"],
    ["a text", '"entry"'],
    ["invalid UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["a million levels", `{"entry":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`],
  ])("that are %s are 400 also when they are signed", async (_what, body) => {
    expect((await post(body)).status).toBe(400);
  });

  test("of three megabytes are read whole, larger ones are 413, and the connection goes on", async () => {
    const empty = JSON.stringify(webhookBody({ statuses: [] }));
    const one = `${JSON.stringify(status("wamid.large", "sent"))},`;
    const count = Math.floor((chatLimits.webhookBodyBytesMax - empty.length) / one.length);
    const full = empty.replace('"statuses":[', `"statuses":[${one.repeat(count).slice(0, -1)}`);
    expect(full.length).toBeGreaterThan(3_000_000);
    expect((await post(full)).status).toBe(200);
    expect(front.statuses).toHaveLength(count);
    expect((await post(" ".repeat(chatLimits.webhookBodyBytesMax + 1))).status).toBe(413);
    expect((await postJson({})).status).toBe(200);
  });

  test("that strangers send slowly, though large, take bounded memory and keep no usual call out", async () => {
    const head = [
      `POST ${PATH} HTTP/1.1`,
      "Host: waybill.test",
      `X-Hub-Signature-256: sha256=${"0".repeat(64)}`,
      `Content-Length: ${chatLimits.webhookBodyBytesMax}`,
    ].join("\r\n");
    const slow: RawConnection[] = [];
    const refused: number[] = [];
    const fitting = Math.floor(SHARE_BYTES / chatLimits.webhookBodyBytesMax);
    const rest = SHARE_BYTES - fitting * chatLimits.webhookBodyBytesMax;
    try {
      for (let i = 0; i < fitting + 5; i += 1) {
        const connection = await RawConnection.open(front.port);
        slow.push(connection);
        connection.answer().then(
          ({ status: code }) => refused.push(code),
          () => {},
        );
        await connection.write(`${head}\r\n\r\n{`);
      }
      await eventually("those that do not fit are refused", () => refused.length === 5);
      expect(new Set(refused)).toEqual(new Set([503]));
      expect((await post(" ".repeat(rest + 1))).status).toBe(503);
      expect((await postJson({})).status).toBe(200);
    } finally {
      for (const connection of slow) connection.close();
    }
    await eventually("there is room again", async () => (await post(" ".repeat(rest + 1))).status === 400);
  }, 90_000);

  test("of any kind, if signed, never cause an internal error", async () => {
    const anything = fc.jsonValue({ maxDepth: 4 });
    const part = fc.oneof(
      anything,
      fc.record({ id: anything, status: fc.oneof(fc.constantFrom("sent", "failed"), anything), errors: anything }),
      fc.record({ id: anything, from: anything, type: anything }),
    );
    const value = fc.record({
      statuses: fc.oneof(fc.array(part), anything),
      messages: fc.oneof(fc.array(part), anything),
    });
    const body = fc.record({
      entry: fc.oneof(
        fc.array(fc.record({ changes: fc.array(fc.record({ value: fc.oneof(value, anything) })) })),
        anything,
      ),
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 4, arbitrary: body }, anything), async (sent) => {
        const isObject = typeof sent === "object" && sent !== null && !Array.isArray(sent);
        expect((await postJson(sent)).status).toBe(isObject ? 200 : 400);
      }),
      { numRuns: 300 },
    );
  }, 90_000);
});
