import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { equip, type Identifiers } from "../security/support/identifiers.ts";
import {
  buildArguments,
  buildRequest,
  fetchOperations,
  type Operation,
  withHeaders,
} from "../security/support/operations.ts";
import { startTarget, type Target } from "../security/support/target.ts";

/** Machines report through it, too often for the log. */
const REPORTS = ["takeMailReport"];
/** Calls other than GET that leave the service unchanged. */
const READS = ["previewTemplate", "signOut"];
/** GET calls that are logged, and need the role `write`. */
const LOOKS = ["getJobContent"];

/** Members of bodies and answers that are secret, or a tenant's own business. */
const SECRET =
  /^(?:access_token|private_key|private_key_pem|certificate_pem|passphrase|smtp_url|wallet_webhook_url|html|api_key|token)$/;

setDefaultTimeout(300_000);

let target: Target;
let operations: readonly Operation[] = [];
let ids: Identifiers;

beforeAll(async () => {
  target = await startTarget();
  operations = (await fetchOperations(target.url)).filter(({ security }) => security === "operator");
  ids = await equip(target, target.victim);
});
afterAll(() => target?.stop());

interface Row {
  readonly request_id: string;
  readonly action: string;
  readonly operator: string;
  readonly status: number | null;
  readonly tenant: string | null;
}

async function allRows(): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body } = await target.operator("GET", `/audit?limit=7${cursor === "" ? "" : `&cursor=${cursor}`}`);
    rows.push(...body.rows);
    cursor = body.next_cursor;
  }
  return rows;
}

test("every call that changes something leaves one row, with its status and without its secrets, and no read leaves any", async () => {
  const secrets = [target.operatorToken, ids.suppressed.slice(0, ids.suppressed.indexOf("@"))];
  const expected: (readonly [id: string, status: number])[] = [];
  expect(operations.length).toBeGreaterThan(30);
  for (const [at, operation] of operations.entries()) {
    const given = buildArguments(operation, ids, {
      word: `audited-${at}.`,
      verifyToken: "",
      operatorToken: "",
      dashboardFile: "",
    });
    const headers = { authorization: `Bearer ${target.operatorToken}`, "x-request-id": `audited-${operation.id}` };
    const seen = await target.probe(withHeaders(buildRequest(operation, given), headers));
    // The tenant has no account at the chat provider whose templates could be read; the call counts all the same.
    const isExcused = seen.status === 409 && operation.id === "syncChatTemplates";
    if (!isExcused && !operation.successes.includes(seen.status))
      throw new Error(`${operation.id}: ${seen.status} ${seen.text}`);
    if (isRead(operation)) continue;
    secrets.push(...secretsIn(given.body), ...secretsIn(parsed(seen.text)));
    if (!REPORTS.includes(operation.id)) expected.push([operation.id, seen.status]);
  }
  const rows = (await allRows()).filter(({ request_id: id }) => id.startsWith("audited-"));
  const found = rows.map(({ request_id: id, action, status }) => [id, action, status]);
  expect(found.toReversed()).toEqual(expected.map(([id, status]) => [`audited-${id}`, id, status]));
  expect(new Set(rows.map(({ operator }) => operator))).toEqual(new Set(["root"]));
  expect(secrets.length).toBeGreaterThan(6);
  const text = JSON.stringify(rows);
  for (const secret of secrets) expect(text).not.toContain(JSON.stringify(secret).slice(1, -1));
});

test("a call that fails leaves one row, too, with the status of its failure", async () => {
  const headers = {
    authorization: `Bearer ${target.operatorToken}`,
    "x-request-id": "failing",
    "content-type": "application/json",
  };
  const body = JSON.stringify({ colour: "a-secret-by-mistake" });
  const seen = await target.probe({ method: "PATCH", path: "/dash/api/tenants/victim", headers, body });
  expect(seen.status).toBe(400);
  const rows = (await allRows()).filter(({ request_id: id }) => id === "failing");
  expect(rows).toMatchObject([{ action: "changeTenant", tenant: "victim", status: 400 }]);
  expect(JSON.stringify(rows)).not.toContain("a-secret-by-mistake");
});

test("an operator that may only read is refused every call that changes something, and none that reads", async () => {
  const made = await target.operator("POST", "/operators", { name: "the reader", role: "read" });
  const headers = { authorization: `Bearer ${made.body.token}` };
  const before = (await allRows()).length;
  for (const [at, operation] of operations.entries()) {
    const given = buildArguments(operation, ids, {
      word: `reader-${at}.`,
      verifyToken: "",
      operatorToken: "",
      dashboardFile: "",
    });
    const { status } = await target.probe(withHeaders(buildRequest(operation, given), headers));
    // Objects that the first test deleted are not found.
    if (isRead(operation) && status >= 300 && status !== 404) throw new Error(`${operation.id}: ${status}`);
    if (!isRead(operation)) expect([operation.id, status]).toEqual([operation.id, 403]);
  }
  expect((await allRows()).length).toBe(before);
});

function isRead({ id, method }: { readonly id: string; readonly method: string }): boolean {
  return (method === "GET" && !LOOKS.includes(id)) || READS.includes(id);
}

function secretsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(secretsIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    SECRET.test(name) && typeof member === "string" ? [member] : secretsIn(member),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
