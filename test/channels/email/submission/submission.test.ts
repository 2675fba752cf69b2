import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { UnavailableError } from "../../../../src/domain/errors.ts";
import { QUEUE_SHARE } from "../../../../src/domain/tenants/tenant.ts";
import { Front } from "../../../http/support/front.ts";
import { eventually } from "../../../support/eventually.ts";
import { must } from "../../../support/must.ts";
import { type Listening, PLATFORM_SENDER, SubmissionWorld } from "./submission-world.ts";

let front: Front;
let world: SubmissionWorld;
let at: Listening;
beforeAll(async () => {
  front = await Front.start();
  const unpaced = { deliveriesPerSecond: null, ...QUEUE_SHARE };
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, ...unpaced });
  await front.registry.putPlan({ name: "three", requestsPerMinute: 3, ...unpaced });
  await front.registry.putPlan({ name: "small", requestsPerMinute: 1_000, ...unpaced, queuedJobsMax: 1 });
  world = new SubmissionWorld(front);
  at = await world.listen();
});
afterAll(async () => {
  await world.stop();
  await front.stop();
}, 90_000);
beforeEach(() => {
  front.queue.failure = null;
  front.queue.queued.length = 0;
  front.queue.emptyWindows();
});
afterEach(() => world.hangUp());

const MAIL = {
  from: `Shop <${PLATFORM_SENDER}>`,
  to: "Ada <ada@example.com>",
  subject: "Your order",
  html: "<p>On its way.</p>",
};

/** Returns the queued payloads by recipient. */
function queued(): Readonly<Record<string, unknown>> {
  return Object.fromEntries(front.queue.queued.map(({ job }) => [job.recipient, JSON.parse(job.payload)]));
}

/** The reply with which nodemailer was refused. */
async function refusal(mail: object, apiKey = front.apiKey): Promise<string> {
  return world
    .mailer(at, apiKey)
    .sendMail({ ...MAIL, ...mail })
    .then(
      ({ response }) => `taken: ${response}`,
      (error: { response?: string }) => error.response ?? String(error),
    );
}

describe("a message", () => {
  test("becomes one job for each recipient, and the reply names them", async () => {
    const { response } = await world.mailer(at, front.apiKey).sendMail({
      ...MAIL,
      cc: ["Bob <bob@example.com>"],
      bcc: ["eve@example.com"],
    });
    const ids = front.queue.queued.map(({ job }) => job.jobId);
    expect(response).toBe(`250 2.0.0 queued as ${ids.join(", ")}`);
    const content = { subject: "Your order", html: MAIL.html };
    expect(queued()).toEqual({
      "ada@example.com": { to: "ada@example.com", toName: "Ada", ...content },
      "bob@example.com": { to: "bob@example.com", toName: "Bob", ...content },
      "eve@example.com": { to: "eve@example.com", ...content },
    });
    expect(front.queue.queued.every(({ tenantId, job }) => tenantId === "acme" && job.channel === "email")).toBe(true);
  });

  test("of text alone is sent as text", async () => {
    const text = 'One <two> & "three"\nfour';
    await world.mailer(at, front.apiKey).sendMail({ ...MAIL, html: undefined, text });
    expect(queued()["ada@example.com"]).toEqual({ to: "ada@example.com", toName: "Ada", subject: MAIL.subject, text });
  });

  test("keeps its text, reply address, tags, files and the headers that the API passes on", async () => {
    const logo = Buffer.from("not really an image");
    await world.mailer(at, front.apiKey).sendMail({
      ...MAIL,
      text: "On its way.",
      replyTo: ["Help <help@shop.test>", "desk@shop.test"],
      inReplyTo: "<question@example.com>",
      references: Array.from({ length: 30 }, (_, n) => `<${"x".repeat(40)}-${n}@example.com>`),
      headers: {
        "X-Order": "Grüße",
        "X-SMTPAPI": '{"to":["eve@example.com"]}',
        "X-PM-Message-Stream": "broadcast",
        "X-Waybill-Tag": ["kind=receipt", "shop=7"],
        "X-Waybill-Topic": "Año nuevo",
        "List-Unsubscribe": "<https://a.test>",
      },
      attachments: [
        { filename: "../bill.txt", content: "Bill", contentType: "text/plain" },
        { filename: "logo.png", content: logo, cid: "logo" },
      ],
    });
    expect(front.queue.queued[0]?.job.topic).toBe("año nuevo");
    // With files, the payload is stored beside the queue.
    const stored = front.payloads.stored.get(`acme ${front.queue.queued[0]?.job.jobId}`);
    const payload: unknown = JSON.parse(Buffer.from(stored ?? []).toString());
    expect(payload).toMatchObject({
      html: MAIL.html,
      text: "On its way.",
      replyTo: [{ address: "help@shop.test", name: "Help" }, { address: "desk@shop.test" }],
      headers: { "In-Reply-To": "<question@example.com>", "X-Order": "Grüße" },
      attachments: [
        { filename: "logo.png", contentType: "image/png", contentId: "logo", bytes: logo.length },
        { filename: "bill.txt", contentType: "text/plain", bytes: 4 },
      ],
    });
    const { headers } = payload as { headers: Readonly<Record<string, string>> };
    expect(Object.keys(headers).sort()).toEqual(["In-Reply-To", "References", "X-Order"]);
    expect(headers["References"]).toMatch(/^<x+-0@example\.com>( <x+-\d+@example\.com>)+ <x+-29@example\.com>$/);
    expect(front.queue.queued[0]?.job.tags).toEqual([
      { name: "kind", value: "receipt" },
      { name: "shop", value: "7" },
    ]);
  });

  test("goes to nobody by way of another server", async () => {
    const client = await world.loggedIn(at, front.apiKey);
    await client.say("MAIL FROM:<a@shop.test>");
    for (const path of ["user%other.test@example.com", "other.test!user@example.com"]) {
      expect(await client.say(`RCPT TO:<${path}>`)).toStartWith("553 5.1.3 the recipient must not have % or !");
    }
    for (const path of ['"a b%other.test"@example.com', '"user@other.test"@example.com']) {
      expect(await client.say(`RCPT TO:<${path}>`)).toStartWith("5");
    }
    // A source route is ignored, and the mail goes the usual way (RFC 5321, 4.1.1.3).
    expect(await client.say("RCPT TO:<@a.test,@b.test:user@example.com>")).toStartWith("250");
    await client.say("DATA");
    expect(await client.say(`From: ${PLATFORM_SENDER}`, "", "Hi", ".")).toStartWith("250");
    expect(Object.keys(queued())).toEqual(["user@example.com"]);
  });

  test("goes to people with internationalised addresses", async () => {
    const client = await world.loggedIn(at, front.apiKey);
    await client.say("MAIL FROM:<a@shop.test> SMTPUTF8");
    expect(await client.say("RCPT TO:<jörg@bücher.example>")).toStartWith("250");
    await client.say("DATA");
    expect(await client.say(`From: ${PLATFORM_SENDER}`, "", "Hi", ".")).toStartWith("250");
    expect(Object.keys(queued())).toEqual(["jörg@xn--bcher-kva.example"]);
  });

  test("with X-Waybill-Template is made from that template, with its subject unless it has its own", async () => {
    const data = { name: "Ada Lovelace", city: "Zürich" };
    const headers = { "X-Waybill-Template": "welcome", "X-Waybill-Data": JSON.stringify(data) };
    await world.mailer(at, front.apiKey).sendMail({ ...MAIL, subject: undefined, headers });
    expect(queued()).toEqual({
      "ada@example.com": { to: "ada@example.com", toName: "Ada", template: "welcome", data },
    });
    await world.mailer(at, front.apiKey).sendMail({ ...MAIL, headers });
    expect(queued()).toMatchObject({ "ada@example.com": { template: "welcome", subject: "Your order" } });
  });

  test("with X-Waybill-Tracking is tracked as that says, each member by itself", async () => {
    const send = (value: string) =>
      world.mailer(at, front.apiKey).sendMail({ ...MAIL, headers: { "X-Waybill-Tracking": value } });
    await send("opens=false, clicks=false");
    expect(queued()["ada@example.com"]).toMatchObject({ tracking: { opens: false, clicks: false } });
    front.queue.queued.length = 0;
    await send("Clicks = FALSE");
    expect(queued()["ada@example.com"]).toMatchObject({ tracking: { clicks: false } });
  });

  test("is refused with a sentence, and nothing of it is queued", async () => {
    const headers = (name: string, value: string) => ({ headers: { [`X-Waybill-${name}`]: value } });
    const cases: readonly (readonly [object, string])[] = [
      [{ html: "<p>Hi</p><script>1</script>" }, "554 5.6.0 the inline HTML cannot be sent: see violations: "],
      [{ from: "boss@bank.test" }, `550 5.7.1 boss@bank.test is not a sender of yours: the address in From must be`],
      [headers("Template", "no-such"), "554 5.6.0 there is no e-mail template with the template_id"],
      [headers("Data", "[1]"), "554 5.6.0 the header x-waybill-data must be a JSON object"],
      [headers("Data", `{"a":${"[".repeat(50_000)}`), "554 5.6.0 the header x-waybill-data must be a JSON object"],
      [headers("Tag", "nothing"), "554 5.6.0 the header x-waybill-tag must be name=value"],
      [headers("Tracking", "opens"), "554 5.6.0 the header x-waybill-tracking must be opens=false, clicks=false"],
      [headers("Tracking", "reads=false"), "554 5.6.0 the header x-waybill-tracking must be opens=false, clicks=false"],
      [headers("Topic", "a@b"), "554 5.6.0 topic must be 1 to 64 letters"],
      [headers("Colour", "red"), "554 5.6.0 x-waybill-colour is not a header that is known here: known are"],
      [headers("Idempotency-Key", "k".repeat(300)), "554 5.6.0 the header x-waybill-idempotency-key must be 1 to 255"],
    ];
    for (const [mail, said] of cases) expect(await refusal(mail)).toStartWith(said);
    const reader = await front.addTenant("reader", "pro");
    expect(await refusal({}, reader)).toStartWith("550 5.7.1 inline HTML needs the permission allow_raw_html");
    expect(queued()).toEqual({});
  });

  test("for a recipient that cannot be written to, is refused at RCPT", async () => {
    const client = await world.loggedIn(at, front.apiKey);
    await client.say("MAIL FROM:<>");
    expect(await client.say("RCPT TO:<ada@[10.0.0.1]>")).toStartWith("553 5.1.3 the recipient must be");
    expect(await client.say("RCPT TO:<postmaster>")).toStartWith("553 5.1.3 the recipient must be");
    expect(await client.say("RCPT TO:<ada@xn--bcher-kva.example>")).toStartWith("250");
    expect(await client.say("RCPT TO:<Ada@example.com>")).toStartWith("250");
    await client.say("DATA");
    expect(await client.say(`From: ${PLATFORM_SENDER}`, "", "Hi", ".")).toStartWith("250 2.0.0 queued as ");
    expect(Object.keys(queued())).toEqual(["ada@xn--bcher-kva.example", "ada@example.com"]);
  });
});

describe("the same message again", () => {
  test("gets the first jobs, by its Message-ID or by the key in its header", async () => {
    const mailer = world.mailer(at, front.apiKey);
    const byId = { ...MAIL, messageId: "<one@shop.test>", date: new Date(0) };
    const first = await mailer.sendMail(byId);
    expect((await mailer.sendMail(byId)).response).toBe(first.response);
    expect(front.queue.queued).toHaveLength(1);
    const byKey = { ...MAIL, headers: { "X-Waybill-Idempotency-Key": "order-1042" } };
    const keyed = await mailer.sendMail(byKey);
    expect((await mailer.sendMail(byKey)).response).toBe(keyed.response);
    expect(front.queue.queued).toHaveLength(2);
    expect(await refusal({ ...byKey, subject: "Another" })).toStartWith("554 5.6.0 this Idempotency-Key was used");
    await mailer.sendMail({ ...byKey, to: "bob@example.com" });
    expect(front.queue.queued).toHaveLength(3);
  });

  test("without either is another message", async () => {
    const client = await world.loggedIn(at, front.apiKey);
    for (let times = 0; times < 2; times += 1) {
      await client.begin("ada@example.com");
      expect(await client.say(`From: ${PLATFORM_SENDER}`, "", "Disk full", ".")).toStartWith("250");
    }
    expect(front.queue.queued).toHaveLength(2);
  });

  test("after a limit on the way is queued for the rest alone", async () => {
    const apiKey = await front.addTenant("limited", "three", ["allow_raw_html"]);
    const to = ["a", "b", "c", "d", "e"].map((name) => `${name}@example.com`);
    const mail = { ...MAIL, to, messageId: "<two@shop.test>", date: new Date(0) };
    const reply =
      "451 4.7.1 too many requests: each recipient counts as one; try again later " +
      "(queued for 3 of 5 recipients; send the same again, and nobody gets it twice)";
    expect(await refusal(mail, apiKey)).toBe(reply);
    expect(front.queue.queued).toHaveLength(3);
    front.queue.queued.length = 0;
    let served = 0;
    const limited = new Response(null, { status: 429, headers: { "ratelimit-remaining": "0" } });
    const send = async (request: Request) =>
      ++served > 3 ? Response.json({ error: "no" }, limited) : front.server.handle(request);
    const soonLimited = await world.listen({ send });
    const failed = world.mailer(soonLimited, front.apiKey).sendMail(mail);
    expect(await failed.catch((error: { response: string }) => error.response)).toBe(reply);
    expect((await world.mailer(at, front.apiKey).sendMail(mail)).response).toStartWith("250 2.0.0 queued as ");
    expect(front.queue.queued.map(({ job }) => job.recipient)).toEqual(to);
  });

  test("after a process that died between queueing and its reply gets the jobs that were queued", async () => {
    const dying = await world.listen({
      send: async (request) => {
        await front.server.handle(request);
        return new Promise(() => undefined);
      },
    });
    const client = await world.loggedIn(dying, front.apiKey);
    await client.begin("ada@example.com");
    const message = [`From: ${PLATFORM_SENDER}`, "Message-ID: <three@shop.test>", "", "Hi", "."];
    void client.say(...message);
    await eventually("the job is queued", () => front.queue.queued.length === 1);
    client.close();
    const again = await world.loggedIn(at, front.apiKey);
    await again.begin("ada@example.com");
    expect(await again.say(...message)).toBe(`250 2.0.0 queued as ${front.queue.queued[0]?.job.jobId}`);
    expect(front.queue.queued).toHaveLength(1);
  });
});

describe("a temporary reply", () => {
  test("is given for a full share of the queue and for stores that are away", async () => {
    const apiKey = await front.addTenant("crowded", "small", ["allow_raw_html"]);
    expect(await refusal({}, apiKey)).toStartWith("taken: 250");
    expect(await refusal({}, apiKey)).toStartWith("452 4.3.1 your share of the queue is used up");
    front.queue.failure = new UnavailableError("away");
    expect(await refusal({})).toStartWith("451 4.3.0 a part of the service cannot be reached at the moment");
    front.queue.failure = null;
    front.queue.failAfter(1, new UnavailableError("away"));
    expect(await refusal({})).toStartWith("451 4.3.0 the job was not queued: try again");
  });
});

describe("the plan's requests", () => {
  /** Nested multiparts, deeper than the parser reads. */
  const UNREADABLE = Array.from(
    { length: 30 },
    (_, n) => `--b${n}\r\nContent-Type: multipart/mixed; boundary=b${n + 1}\r\n`,
  );

  test("are one for each recipient", async () => {
    const before = front.queue.counted;
    const to = ["ada@example.com", "bob@example.com", "eve@example.com"];
    await world.mailer(at, front.apiKey).sendMail({ ...MAIL, to });
    expect(front.queue.counted - before).toBe(3);
  });

  test("are one for a message that cannot be read, and over the limit none is read", async () => {
    const client = await world.loggedIn(at, await front.addTenant("hostile", "three", ["allow_raw_html"]));
    const replies: string[] = [];
    for (let times = 0; times < 4; times += 1) {
      await client.begin("ada@example.com", "bob@example.com");
      replies.push(
        await client.say(
          `From: ${PLATFORM_SENDER}`,
          "Content-Type: multipart/mixed; boundary=b0",
          "",
          ...UNREADABLE,
          ".",
        ),
      );
    }
    const unread = expect.stringMatching(/^554 5\.6\.0 the message could not be read/);
    expect(replies).toEqual([unread, unread, unread, expect.stringMatching(/^451 4\.7\.1 too many requests/)]);
  });
});

describe("a login", () => {
  test("needs TLS, a message needs a login, and both say so", async () => {
    const client = await world.dial(at);
    await client.say("EHLO client.test");
    const plain = `AUTH PLAIN ${Buffer.from(`\0a\0${front.apiKey}`).toString("base64")}`;
    expect(await client.say(plain)).toStartWith("538");
    expect(await client.say("MAIL FROM:<a@shop.test>")).toStartWith("530 5.7.0 log in first");
    await client.secure();
    expect(await client.say("MAIL FROM:<a@shop.test>")).toStartWith("530 5.7.0 log in first");
    expect(await client.say("VRFY ada@example.com")).toStartWith("500");
    expect(await client.say(plain)).toStartWith("235");
  });

  test("works with AUTH LOGIN, whatever the user is called", async () => {
    const client = await world.dial(at);
    await client.secure();
    expect(await client.say("AUTH LOGIN")).toStartWith("334");
    expect(await client.say(Buffer.from("whoever").toString("base64"))).toStartWith("334");
    expect(await client.say(Buffer.from(front.apiKey).toString("base64"))).toStartWith("235");
  });

  test("with wrong keys is refused, three end the connection, ten slow the address, and a right key is taken", async () => {
    const guarded = await world.listen();
    for (let connection = 0; connection < 4; connection += 1) {
      const client = await world.dial(guarded);
      const guess = `AUTH PLAIN ${Buffer.from("\0a\0wrong").toString("base64")}`;
      const replies = [await client.logIn("wrong"), await client.say(guess)];
      if (connection < 3) replies.push(await client.say(guess));
      expect(replies.pop()).toStartWith("421 4.7.0 too many wrong keys");
      for (const reply of replies) expect(reply).toBe("535 5.7.8 the password is not an API key");
      await client.ended();
    }
    await world.loggedIn(guarded, front.apiKey);
  });

  test("needs a key that may send", async () => {
    const { api_key } = await must(front.registry.createKey("acme", { scopes: ["read"] }));
    const client = await world.dial(at);
    expect(await client.logIn(api_key)).toBe("535 5.7.8 this API key lacks the scope send");
  });

  test("ends with its key: a message after it was revoked is not taken", async () => {
    const apiKey = await front.addTenant("leaver", "pro", ["allow_raw_html"]);
    const client = await world.loggedIn(at, apiKey);
    await client.begin("ada@example.com");
    const [key] = await must(front.registry.keys("leaver"));
    await must(front.registry.revokeKey("leaver", String(key?.key_id)));
    expect(await client.say(`From: ${PLATFORM_SENDER}`, "", "Hi", ".")).toMatch(
      /^(421 4\.7\.0|550 5\.7\.8) the API key/,
    );
    expect(front.queue.queued).toHaveLength(0);
  });
});
