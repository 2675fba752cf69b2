import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Answer,
  finalJob,
  type StartOptions,
  startWaybill,
  temporaryHome,
  type Waybill,
} from "../../support/waybill.ts";
import { serveCallbackKeys } from "./callback-keys.ts";
import { probe, type Request, type Seen } from "./probe.ts";

/** A tenant of the product under attack. */
export interface Account {
  readonly id: string;
  readonly apiKey: string;
}

/** A running Waybill with two tenants: one that is attacked, and one that attacks. */
export interface Target {
  readonly url: string;
  readonly waybill: Waybill;
  readonly victim: Account;
  readonly attacker: Account;
  readonly operatorToken: string;
  readonly webhookSecret: string;
  /** Any request, sent verbatim. */
  probe(request: Request): Promise<Seen>;
  /** Makes a tenant's call. */
  call(account: Account, method: string, path: string, body?: unknown): Promise<Answer>;
  operator(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Waits for the end of the job in an answer, and returns the job. */
  ended(account: Account, accepted: Answer): Promise<Answer["body"]>;
  stop(): Promise<void>;
}

export const TEMPLATE = { channel: "email", subject: "Hello {{.name}}", html: "<p>Hello {{.name}}</p>" };

export async function startTarget(
  environment: Readonly<Record<string, string>> = {},
  options: StartOptions = {},
): Promise<Target> {
  const home = await temporaryHome();
  const keys = serveCallbackKeys();
  const settings = { GOOGLE_CALLBACK_KEYS_URL: keys.url.href, SECURITY_CONTACT: "security@example.com" };
  const waybill = await startWaybill(home.path, { ...settings, ...environment }, options);
  // The document's own examples put tenants on the second.
  for (const plan of ["unlimited", "pro"]) {
    await expectStatus(waybill.operator("PUT", `/plans/${plan}`, { requests_per_minute: 1_000_000 }), 200);
  }
  const account = async (id: string): Promise<Account> => {
    await expectStatus(waybill.operator("POST", "/tenants", { ...TENANT, id, name: id }), 201);
    await expectStatus(waybill.operator("PUT", `/tenants/${id}/templates/welcome`, TEMPLATE), 200);
    return { id, apiKey: (await waybill.operator("POST", `/tenants/${id}/keys`)).body.api_key };
  };
  const [victim, attacker] = [await account("victim"), await account("mallory")];
  const readSecret = (name: string, file: string) =>
    environment[name] ?? readFileSync(join(home.path, file), "utf8").trim();
  return {
    url: waybill.url,
    waybill,
    victim,
    attacker,
    operatorToken: readSecret("OPERATOR_TOKEN", "operator-token"),
    webhookSecret: readSecret("WEBHOOK_SECRET", "webhook-secret"),
    probe: (request) => probe(waybill.url, request),
    call: ({ apiKey }, method, path, body) => waybill.request(apiKey, method, path, body),
    operator: waybill.operator,
    ended: ({ apiKey }, accepted) => {
      if (accepted.status !== 202) throw new Error(`not accepted: ${accepted.status} ${JSON.stringify(accepted.body)}`);
      return finalJob(waybill, apiKey, accepted.body.job_id);
    },
    async stop() {
      await waybill.stop();
      await keys.stop(true);
      await home.remove();
    },
  };
}

const TENANT = {
  plan: "unlimited",
  channels: ["email", "whatsapp", "wallet"],
  permissions: ["allow_raw_html"],
  tokens: 100_000,
};

async function expectStatus(answer: Promise<Answer>, status: number): Promise<void> {
  const { status: given, body } = await answer;
  if (given !== status) throw new Error(`the target could not be set up: ${given} ${JSON.stringify(body)}`);
}
