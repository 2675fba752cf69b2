import { unzipSync } from "fflate";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { newApiKey, randomText } from "../../../src/tenants/api-key.ts";
import { eventually } from "../../support/eventually.ts";
import { WalletDevice } from "../../support/wallet-device.ts";
import type { Account, Target } from "./target.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** The identifiers of a tenant's objects, of every kind that the API takes. */
export interface Identifiers {
  readonly tenantId: string;
  readonly keyId: string;
  /** The id of a key that the tenant may revoke itself. */
  readonly ownKeyId: string;
  /** The id of an operator, which belongs to no tenant. */
  readonly operatorId: string;
  readonly jobId: string;
  /** The id of a job that failed. */
  readonly failedJobId: string;
  /** The ids of scheduled jobs: one to be moved, and one to be cancelled. */
  readonly movedJobId: string;
  readonly canceledJobId: string;
  readonly passId: string;
  readonly googlePassId: string;
  readonly classId: string;
  readonly webhookId: string;
  readonly domain: string;
  readonly alias: string;
  readonly template: string;
  readonly walletTemplate: string;
  /** An address on the suppression list. */
  readonly suppressed: string;
  readonly idempotencyKey: string;
  /** The id of one of its events, where the next page of a list begins. */
  readonly cursor: string;
  readonly passType: string;
  readonly serial: string;
  readonly objectId: string;
  /** Secrets that their recipients present: the pass's devices, the readers of a message. */
  readonly device: string;
  readonly passToken: string;
  readonly openToken: string;
  readonly clickToken: string;
  readonly passFileToken: string;
  readonly unsubscribeToken: string;
}

/** Without an issuer of Google's wallet in the configuration, all tenants share the sandbox's. */
export const ISSUER = "3388000000012345678";
export const hiddenTemplateName = (tenantId: string) => `order_of_${tenantId}_hx0123456789`;

/** Marks every text of the tenant's that must stay private. */
export const confidential = (tenantId: string) => `for the eyes of ${tenantId} alone`;

/** Creates one object of every kind for the tenant. */
export async function equip(target: Target, account: Account): Promise<Identifiers> {
  const { id } = account;
  const own = (name: string) => `${id}-${name}`;
  await target.operator("PUT", `/tenants/${id}/templates/${own("mail")}`, {
    channel: "email",
    subject: `Subject ${confidential(id)}`,
    html: `<p>Text ${confidential(id)}: <a href="https://shop.example/${id}">shop</a></p>`,
  });
  await target.operator("PUT", `/tenants/${id}/templates/${own("pass")}`, {
    channel: "wallet",
    pass_type: "apple",
    pass_data: { organization_name: `Name ${confidential(id)}`, description: "Ticket" },
  });
  await target.operator("PUT", `/tenants/${id}/aliases/${own("alias")}`, { meta_name: hiddenTemplateName(id) });
  await target.operator("POST", `/tenants/${id}/domains`, { domain: `mail.${id}.example` });
  await target.operator("PUT", `/tenants/${id}/suppressions/${own("left")}@example.com`, { reason: "manual" });
  const webhook = await target.call(account, "POST", "/v1/webhooks", {
    url: `https://hooks.${id}.example/told`,
    // Its tenant may read it, so it is confidential to the attacker alone.
    description: account === target.victim ? `CONFIDENTIAL webhook of ${id}` : null,
  });
  const operator = await target.operator("POST", "/operators", { name: own("operator"), role: "read" });
  const key = await target.operator("POST", `/tenants/${id}/keys`);
  const ownKey = await target.operator("POST", `/tenants/${id}/keys`);
  return {
    tenantId: id,
    keyId: key.body.key_id,
    ownKeyId: ownKey.body.key_id,
    operatorId: operator.body.operator_id,
    webhookId: webhook.body.webhook_id,
    domain: `mail.${id}.example`,
    alias: own("alias"),
    template: own("mail"),
    walletTemplate: own("pass"),
    suppressed: `${own("left")}@example.com`,
    ...(await sendMail(target, account, own("mail"))),
    ...(await failMail(target, account, own("mail"))),
    ...(await scheduleMails(target, account, own("mail"))),
    ...(await makeApplePass(target, account)),
    ...(await mailApplePass(target, account, own("mail"))),
    ...(await makeGooglePass(target, account)),
  };
}

async function sendMail(target: Target, account: Account, template_id: string) {
  const to_address = `reader-of-${account.id}@example.com`;
  const idempotencyKey = `${account.id}-order-1`;
  const accepted = await target.probe({
    method: "POST",
    path: "/v1/send/email",
    headers: {
      "x-api-key": account.apiKey,
      "content-type": "application/json",
      "idempotency-key": idempotencyKey,
    },
    body: JSON.stringify({ to_address, template_id }),
  });
  const jobId: string = JSON.parse(accepted.text).job_id;
  const source = await eventually("the message has come", async () => {
    const { body } = await target.operator("GET", `/sandbox/messages?to=${to_address}`);
    return body.messages[0]?.source as string | undefined;
  });
  const plain = source.replaceAll("=\r\n", "").replaceAll("=3D", "=");
  const tokenAfter = (prefix: string) => new RegExp(`${prefix}([A-Za-z0-9_-]{20,})`).exec(plain)?.[1] ?? "";
  const cursor = await eventually("its event is listed", async () => {
    const { body } = await target.call(account, "GET", `/v1/jobs/${jobId}/events`);
    return body.events[0]?.event_id as number | undefined;
  });
  return {
    jobId,
    idempotencyKey,
    cursor: String(cursor),
    openToken: tokenAfter("/t/o/"),
    clickToken: tokenAfter("/t/c/"),
    unsubscribeToken: tokenAfter("/u/"),
  };
}

async function failMail(target: Target, account: Account, template_id: string) {
  const to_address = `reader-of-${account.id}@reject.test`;
  const accepted = await target.call(account, "POST", "/v1/send/email", { to_address, template_id });
  const failedJobId: string = accepted.body.job_id;
  await eventually("the message is refused", async () => {
    const { body } = await target.call(account, "GET", `/v1/jobs/${failedJobId}`);
    return body.status === "failed" || undefined;
  });
  return { failedJobId };
}

async function scheduleMails(target: Target, account: Account, template_id: string) {
  const scheduled_at = new Date(Date.now() + DAY_MS).toISOString();
  const body = { to_address: `later-reader-of-${account.id}@example.com`, template_id, scheduled_at };
  const schedule = async (): Promise<string> =>
    (await target.call(account, "POST", "/v1/send/email", body)).body.job_id;
  return { movedJobId: await schedule(), canceledJobId: await schedule() };
}

async function makeApplePass(target: Target, account: Account) {
  const pass_data = { serial_number: `${account.id}-serial`, organization_name: "Club", description: "Ticket" };
  const accepted = await target.call(account, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
  const { result } = await target.ended(account, accepted);
  const bytes = new Uint8Array(Buffer.from(result.pkpass_base64, "base64"));
  const pass = JSON.parse(new TextDecoder().decode(unzipSync(bytes)["pass.json"]));
  const device = new WalletDevice(`device-of-${account.id}`, "00ff".repeat(16));
  const ids = { passType: pass.passTypeIdentifier, serial: pass.serialNumber, passToken: pass.authenticationToken };
  await device.add({
    passTypeId: ids.passType,
    serial: ids.serial,
    authenticationToken: ids.passToken,
    serviceUrl: pass.webServiceURL,
    bytes,
  });
  return { ...ids, passId: result.pass_id as string, device: device.deviceId };
}

async function mailApplePass(target: Target, account: Account, template_id: string) {
  const pass_data = { serial_number: `${account.id}-carried`, organization_name: "Club", description: "Ticket" };
  const accepted = await target.call(account, "POST", "/v1/send/email", {
    to_address: `holder-of-${account.id}@example.com`,
    template_id,
    pass: { pass_type: "apple", pass_data },
  });
  const { result } = await target.ended(account, accepted);
  return { passFileToken: String(result.download_url).replace(/^.*\//, "") };
}

async function makeGooglePass(target: Target, account: Account) {
  const classId = `${ISSUER}.${account.id}-class`;
  const objectId = `${ISSUER}.${account.id}-object`;
  const class_data = { id: classId, issuerName: account.id, eventName: { defaultValue: TEXT } };
  await target.call(account, "POST", "/v1/google/classes", { class_type: "eventTicket", class_data });
  const pass_data = { class_id: classId, class_type: "eventTicket", object_id: objectId, object_data: {} };
  const accepted = await target.call(account, "POST", "/v1/passes/create", { pass_type: "google", pass_data });
  const { result } = await target.ended(account, accepted);
  return { classId, objectId, googlePassId: result.pass_id as string };
}

const TEXT = { language: "en", value: "The final" };

/** Returns unknown names of the same forms. */
export function inventedLike(real: Identifiers): Identifiers {
  const word = () => randomText(systemRandom, 10).toLowerCase();
  return {
    tenantId: `t-${word()}`,
    keyId: `key_${randomText(systemRandom, 16)}`,
    ownKeyId: `key_${randomText(systemRandom, 16)}`,
    operatorId: `op_${randomText(systemRandom, 16)}`,
    jobId: anotherUuid(real.jobId),
    failedJobId: anotherUuid(real.failedJobId),
    webhookId: anotherUuid(real.webhookId),
    movedJobId: anotherUuid(real.movedJobId),
    canceledJobId: anotherUuid(real.canceledJobId),
    passId: anotherUuid(real.passId),
    googlePassId: anotherUuid(real.googlePassId),
    classId: `${ISSUER}.${word()}`,
    domain: `mail.${word()}.example`,
    alias: word(),
    template: word(),
    walletTemplate: word(),
    suppressed: `${word()}@example.com`,
    idempotencyKey: word(),
    cursor: String(Number(real.cursor) + 1),
    passType: real.passType,
    serial: word(),
    objectId: `${ISSUER}.${word()}`,
    device: word(),
    passToken: word().repeat(4).slice(0, real.passToken.length),
    openToken: altered(real.openToken),
    clickToken: altered(real.clickToken),
    passFileToken: altered(real.passFileToken),
    unsubscribeToken: altered(real.unsubscribeToken),
  };
}

/** Returns another UUID with the same time, so that the two cannot be told apart by their age. */
function anotherUuid(uuid: string): string {
  return `${uuid.slice(0, -12)}${Array.from(systemRandom.fill(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Changes one character in the middle. */
export function altered(token: string): string {
  const at = token.length >> 1;
  return `${token.slice(0, at)}${token[at] === "A" ? "B" : "A"}${token.slice(at + 1)}`;
}

/** A key of the right form that was never issued. */
export function inventedKey(): string {
  return newApiKey(systemRandom);
}
