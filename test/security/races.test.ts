import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Attacks } from "./support/attacks.ts";
import type { Seen } from "./support/probe.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * Many requests at one moment must not get more than they would one after the other: more than a limit, a balance, a
 * revoked key.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("races");

const LIMIT = 50;
let target: Target;

beforeAll(async () => {
  target = await startTarget();
  await target.operator("PUT", "/plans/limited", { requests_per_minute: LIMIT });
});
afterAll(() => target?.stop());

async function tenant(id: string, more: object): Promise<readonly [string, string]> {
  const { status } = await target.operator("POST", "/tenants", { id, name: id, plan: "unlimited", ...more });
  expect(status).toBe(201);
  await target.operator("PUT", `/tenants/${id}/templates/welcome`, {
    channel: "email",
    subject: "x",
    html: "<p>x</p>",
  });
  const keys = await Promise.all([0, 1].map(() => target.operator("POST", `/tenants/${id}/keys`)));
  return [keys[0]?.body.api_key, keys[1]?.body.api_key];
}

const countAnswers = (seen: readonly Seen[], holds: (status: number) => boolean) =>
  seen.filter(({ status }) => holds(status)).length;

test("a plan's limit is the tenant's, for all its keys and addresses together, at any moment", async () => {
  const message = JSON.stringify({ to_address: "ann@example.com", template_id: "welcome" });
  const json = { "content-type": "application/json" };
  const spaced = `${message}${" ".repeat(70_000)}`;
  const ways = [
    { name: "reads", method: "GET", path: "/v1/jobs/x" },
    { name: "lists", method: "GET", path: "/v1/domains" },
    { name: "sends", method: "POST", path: "/v1/send/email", body: message, headers: json },
    { name: "large sends", method: "POST", path: "/v1/send/email", body: spaced, headers: json },
    { name: "malformed sends", method: "POST", path: "/v1/send/email", body: "{", headers: json },
    { name: "unknown addresses", method: "GET", path: "/v1/nothing" },
    { name: "other verbs", method: "PATCH", path: "/v1/domains" },
    { name: "heads", method: "HEAD", path: "/v1/domains" },
  ];
  await attacks.run(
    [...ways, null],
    (way) => way?.name ?? "all of them",
    async (way) => {
      const id = `limited-${way?.name.replace(" ", "-") ?? "all"}`;
      const keys = await tenant(id, { plan: "limited", channels: ["email"] });
      const calls = Array.from({ length: 4 * LIMIT }, (_, at) => {
        const { name: _name, ...request } = way ?? ways[at % ways.length] ?? { name: "", method: "GET", path: "/" };
        const more = { "x-forwarded-for": `10.0.0.${at}`, "idempotency-key": `k-${at}` };
        return target.probe({ ...request, headers: { ...request.headers, ...more, "x-api-key": keys[at % 2] ?? "" } });
      });
      const admitted = countAnswers(await Promise.all(calls), (status) => status !== 429);
      return admitted <= LIMIT ? null : `${admitted} of ${LIMIT} were admitted`;
    },
  );
});

test("no token of a balance is spent twice", async () => {
  const TOKENS = 5;
  await attacks.run(
    ["apple", "google"],
    (type) => `40 passes of ${type} for ${TOKENS} tokens`,
    async (pass_type) => {
      const id = `poor-${pass_type}`;
      const [apiKey] = await tenant(id, { channels: ["wallet"], tokens: TOKENS });
      const account = { id, apiKey };
      const data = (at: number) =>
        pass_type === "apple"
          ? { serial_number: `s-${at}`, organization_name: "Club", description: "Ticket" }
          : {
              class_id: "3388000000012345678.races",
              object_id: `3388000000012345678.race-${at}`,
              class_type: "generic",
              object_data: {},
            };
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, at) =>
          target.call(account, "POST", at % 2 === 0 ? "/v1/send/wallet" : "/v1/passes/create", {
            pass_type,
            pass_data: data(at),
          }),
        ),
      );
      const accepted = answers.filter(({ status }) => status === 202);
      if (accepted.length !== TOKENS) return `${accepted.length} were accepted`;
      const odd = answers.find(({ status }) => status !== 202 && status !== 402);
      if (odd !== undefined) return `one was answered ${odd.status}`;
      for (const each of accepted) expect((await target.ended(account, each)).status).toBe("success");
      const { body } = await target.operator("GET", `/tenants/${id}`);
      return body.tokens === 0 ? null : `the balance is ${body.tokens}`;
    },
  );
});

test("concurrent requests with the same serial make one pass", async () => {
  const [apiKey] = await tenant("twins", { channels: ["wallet"], tokens: 100 });
  const pass_data = { serial_number: "one", organization_name: "Club", description: "Ticket" };
  await attacks.run(
    [20],
    (times) => `${times} times`,
    async (times) => {
      const create = () =>
        target.call({ id: "twins", apiKey }, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
      const answers = await Promise.all(Array.from({ length: times }, create));
      const accepted = answers.filter(({ status }) => status === 202).length;
      const { body } = await target.operator("GET", "/tenants/twins");
      return accepted === 1 && body.tokens === 99 ? null : `${accepted} were accepted, ${100 - body.tokens} paid for`;
    },
  );
});

test("concurrent requests with the same idempotency key make one message", async () => {
  await attacks.run(
    [40],
    (times) => `${times} times`,
    async (times) => {
      const headers = {
        "x-api-key": target.attacker.apiKey,
        "content-type": "application/json",
        "idempotency-key": "one",
      };
      const body = JSON.stringify({ to_address: "once@example.com", template_id: "welcome" });
      const request = { method: "POST", path: "/v1/send/email", headers, body };
      const seen = await Promise.all(Array.from({ length: times }, () => target.probe(request)));
      const jobs = new Set(seen.filter(({ status }) => status === 202).map(({ text }) => JSON.parse(text).job_id));
      return jobs.size === 1 ? null : `it is ${jobs.size} jobs`;
    },
  );
});

test("a key revoked under load opens nothing once the call has answered, and the other key goes on", async () => {
  await attacks.run(
    [1, 2, 3],
    (round) => `round ${round}`,
    async (round) => {
      const id = `revoked-${round}`;
      const [first, second] = await tenant(id, {});
      const { body } = await target.operator("GET", `/tenants/${id}/keys`);
      const { key_id } = body.keys.find(({ prefix }: { prefix: string }) => first.startsWith(prefix));
      const read = (apiKey: string) =>
        target.probe({ method: "GET", path: "/v1/domains", headers: { "x-api-key": apiKey } });
      const load = () => Promise.all(Array.from({ length: 50 }, () => read(first)));
      const [, revoked] = await Promise.all([
        load(),
        target.operator("DELETE", `/tenants/${id}/keys/${key_id}`),
        load(),
      ]);
      expect(revoked.status).toBe(204);
      const late = countAnswers(await load(), (status) => status !== 401);
      if (late > 0) return `${late} requests were answered with the revoked key`;
      return (await read(second)).status === 200 ? null : "the other key is refused, too";
    },
  );
});
