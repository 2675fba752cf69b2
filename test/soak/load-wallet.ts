import { unzipSync } from "fflate";
import type { Message } from "./book.ts";
import { mail } from "./load-email.ts";
import type { LoadContext } from "./soak-world.ts";
import type { SoakTenant } from "./tenants.ts";

/** A pass that exists, as its owner knows it. */
interface KnownPass {
  readonly tenant: SoakTenant;
  readonly passId: string;
  readonly type: "apple" | "google";
  /** Updates that were answered 202, and those without an answer. */
  updates: number;
  open: number;
}

const PASSES_MAX = 400;
const RESULT_TRIES = 20;
const ISSUER = "3388000000012345678";

/** Creates passes, and updates existing ones. */
export class WalletLoad {
  readonly passes: KnownPass[] = [];
  private devicesUsed = 0;

  async create(context: LoadContext): Promise<void> {
    const { dice, api, book, tenants } = context;
    const tenant = dice.pick(tenants.withTokens);
    const type = dice.chance(0.7) ? "apple" : "google";
    const message = book.ask(tenant.id, "wallet");
    const body = type === "apple" ? applePass(message.seq) : googlePass(message.seq, tenant);
    const headers: Record<string, string> = dice.chance(0.5) ? { "idempotency-key": `pass-${message.seq}` } : {};
    const answer = await api.tenant(tenant.apiKey, "POST", "/v1/send/wallet", body, { headers });
    book.answered(message, answer.status, answer.body?.job_id);
    if (answer.status === 202) this.await(context, message, { tenant, type, tries: RESULT_TRIES });
  }

  /** Polls the job until the pass is there. */
  private await(
    context: LoadContext,
    message: Message,
    { tenant, type, tries }: { readonly tenant: SoakTenant; readonly type: KnownPass["type"]; readonly tries: number },
  ): void {
    if (tries === 0) return;
    context.later(3_000, async () => {
      const { status, body } = await context.api.tenant(tenant.apiKey, "GET", `/v1/jobs/${message.jobId}`);
      if (status !== 200 || body.status !== "success") {
        if (body?.status !== "failed") this.await(context, message, { tenant, type, tries: tries - 1 });
        return;
      }
      if (this.passes.length >= PASSES_MAX) this.passes.splice(context.dice.between(0, PASSES_MAX - 1), 1);
      const pass: KnownPass = { tenant, passId: body.result.pass_id, type, updates: 0, open: 0 };
      this.passes.push(pass);
      if (type === "apple") await this.install(context, pass);
    });
  }

  /** Puts it on a phone, as long as there is one without a pass. */
  private async install({ api, wallet }: LoadContext, { tenant, passId }: KnownPass): Promise<void> {
    const device = wallet.devices[this.devicesUsed];
    if (device === undefined) return;
    const { status, body } = await api.tenant(tenant.apiKey, "GET", `/v1/passes/${passId}/status`);
    if (status !== 200 || body.pass_type !== "apple") return;
    const file = await fetchFile(api, tenant, passId);
    if (file === null) return;
    this.devicesUsed += 1;
    await device.add(file).catch(() => undefined);
  }

  /** An e-mail that brings a pass of its own. */
  async carry(context: LoadContext): Promise<void> {
    const { dice, api, book, tenants } = context;
    const tenant = dice.pick(tenants.withTokens);
    const message = book.ask(tenant.id, "email");
    message.hasPass = true;
    const pass = dice.chance(0.7) ? applePass(message.seq) : googlePass(message.seq, tenant);
    const body = { ...mail(message, `pass${message.seq}@example.com`, 100), pass };
    const answer = await api.tenant(tenant.apiKey, "POST", "/v1/send/email", body);
    book.answered(message, answer.status, answer.body?.job_id);
  }

  async update(context: LoadContext): Promise<void> {
    const { dice, api, book } = context;
    if (this.passes.length === 0) return;
    const pass = dice.pick(this.passes);
    const message = book.ask(pass.tenant.id, "wallet", "update");
    const value = String(message.seq);
    const pass_data =
      pass.type === "apple"
        ? { auxiliary_fields: [{ key: "round", value }] }
        : { textModulesData: [{ id: "round", header: "Round", body: value }] };
    const answer = await api.tenant(pass.tenant.apiKey, "PUT", `/v1/passes/${pass.passId}`, { pass_data });
    book.answered(message, answer.status, answer.body?.job_id);
    if (answer.status === 202) pass.updates += 1;
    else if (answer.status === 0 || answer.status >= 500) pass.open += 1;
  }

  /** At the end: a pass has the version that follows from its accepted updates. Returns the differences. */
  async wrongVersions(
    context: Pick<LoadContext, "api">,
  ): Promise<{ readonly checked: number; readonly broken: string[] }> {
    const broken: string[] = [];
    for (const { tenant, passId, updates, open } of this.passes) {
      const { status, body } = await context.api.tenant(tenant.apiKey, "GET", `/v1/passes/${passId}/status`);
      const isRight = status === 200 && body.version >= 1 + updates && body.version <= 1 + updates + open;
      if (!isRight)
        broken.push(`pass ${passId} of ${tenant.id}: ${status} ${body?.version}, ${updates}+${open} updates`);
    }
    return { checked: this.passes.length, broken };
  }
}

async function fetchFile(api: LoadContext["api"], tenant: SoakTenant, passId: string) {
  const address = `${api.url}/v1/passes/${passId}/download`;
  const answer = await fetch(address, { headers: { "x-api-key": tenant.apiKey } }).catch(() => null);
  if (answer === null || answer.status !== 200) return null;
  const bytes = await answer.bytes();
  const json: unknown = JSON.parse(new TextDecoder().decode(unzipSync(bytes)["pass.json"]));
  const member = (name: string) => String(Reflect.get(Object(json), name));
  return {
    passTypeId: member("passTypeIdentifier"),
    serial: member("serialNumber"),
    authenticationToken: member("authenticationToken"),
    serviceUrl: member("webServiceURL"),
    bytes,
  };
}

function applePass(seq: number) {
  const auxiliary_fields = [{ key: "round", label: "Round", value: "1", changeMessage: "Now round %@" }];
  const pass_data = {
    serial_number: `soak-${seq}`,
    organization_name: "Soak",
    description: "Ticket",
    auxiliary_fields,
  };
  return { pass_type: "apple", pass_data };
}

function googlePass(seq: number, { id }: SoakTenant) {
  const object_data = { textModulesData: [{ id: "round", header: "Round", body: "1" }] };
  return {
    pass_type: "google",
    pass_data: {
      class_id: `${ISSUER}.${id}`,
      class_type: "generic",
      object_id: `${ISSUER}.soak-${seq}`,
      object_data,
    },
  };
}
