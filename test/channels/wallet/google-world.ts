import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { GoogleWallet } from "../../../src/channels/wallet/google/google-wallet.ts";
import type { GoogleClassOwners } from "../../../src/channels/wallet/google-classes.ts";
import type { Pass, PassStore } from "../../../src/channels/wallet/passes.ts";
import type { WalletPayload } from "../../../src/channels/wallet/payload.ts";
import {
  type GoogleSandbox,
  type GoogleSandboxOptions,
  startGoogleSandbox,
} from "../../../src/channels/wallet/sandbox/google-sandbox.ts";
import type { PlatformCredentials } from "../../../src/domain/channels/platform.ts";
import type { GoogleIssuer, GoogleKind } from "../../../src/domain/channels/wallet.ts";
import type { Clock } from "../../../src/domain/clock.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant } from "../../support/tenants.ts";

export const ISSUER = "3388000000000000001";
export const ISSUER_EMAIL = "passes@acme.iam.gserviceaccount.com";
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PRIVATE_PEM = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
export const PUBLIC_PEM = createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString();
export const GOOGLE_ISSUER: GoogleIssuer = {
  issuerId: ISSUER,
  clientEmail: ISSUER_EMAIL,
  privateKeyPem: PRIVATE_PEM,
};

const HASTE = 200;
/** Time that passes so fast that a pace of 20 calls a second does not delay a test. */
export const hurriedClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now() * HASTE,
  setTimer: (delayMs, run) => {
    const timer = setTimeout(run, delayMs / HASTE);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** The owners of resources that tenants share; unused where they share none. */
export interface Shared {
  readonly platform: PlatformCredentials;
  readonly classOwners: GoogleClassOwners;
  readonly passes?: Pick<PassStore, "holder">;
}

const away = () => Promise.reject(new UnavailableError("there is no registry here"));
const NOTHING_SHARED: Shared = {
  platform: { whatsapp: null, apple: null, google: null },
  classOwners: { findOwner: away, claim: away },
};

/** A tenant with an issuer of its own, Google's wallet as this program talks to it, and the sandbox behind it. */
export class GoogleWorld {
  readonly telemetry = new QuietTelemetry();
  readonly tenant: Tenant = aTenant({
    wallet: { apple: null, google: GOOGLE_ISSUER, templates: new Map(), webhookUrl: null },
  });
  wallet: GoogleWallet;
  callbackUrl: string | null = null;

  private constructor(
    readonly sandbox: GoogleSandbox,
    private readonly shared: Shared,
  ) {
    this.wallet = this.newWallet();
  }

  static async open(options: Partial<GoogleSandboxOptions> = {}, shared = NOTHING_SHARED): Promise<GoogleWorld> {
    const keys = new Map([[ISSUER_EMAIL, PUBLIC_PEM]]);
    return new GoogleWorld(await startGoogleSandbox({ clock: hurriedClock, keys, ...options }), shared);
  }

  newWallet(urls: { readonly apiUrl?: string; readonly tokenUrl?: string } = {}, clock = hurriedClock): GoogleWallet {
    return new GoogleWallet({
      apiUrl: urls.apiUrl ?? this.sandbox.apiUrl,
      tokenUrl: urls.tokenUrl ?? this.sandbox.tokenUrl,
      saveUrlBase: "https://pay.example.com/save",
      passes: { holder: away },
      callbackUrl: () => this.callbackUrl,
      ...this.shared,
      clock,
      random: systemRandom,
      telemetry: this.telemetry,
    });
  }

  /** The process dies, and another one continues. */
  restart(): void {
    this.wallet.close();
    this.wallet = this.newWallet();
  }

  create(pass: Pass, tenant: Tenant = this.tenant): Promise<Outcome> {
    return this.wallet.deliver(
      pass,
      { ...buildPayload(pass, "create"), jobId: pass.jobId },
      tenant,
      new AbortController().signal,
    );
  }

  update(pass: Pass, notifyMessage?: string, tenant: Tenant = this.tenant): Promise<Outcome> {
    return this.updateBy(`job-of-${pass.passId}-${pass.version}`, pass, notifyMessage, tenant);
  }

  updateBy(jobId: string, pass: Pass, notifyMessage?: string, tenant: Tenant = this.tenant): Promise<Outcome> {
    const payload = {
      jobId,
      ...buildPayload(pass, "update"),
      ...(notifyMessage === undefined ? {} : { notifyMessage }),
    };
    return this.wallet.deliver(pass, payload, tenant, new AbortController().signal);
  }

  /** The object that Google holds, without the members that Google adds itself. */
  held(pass: Pass): JsonObject | null {
    const data = this.sandbox.resources.data(objectKind(pass), pass.serial);
    if (data === null) return null;
    return Object.fromEntries(Object.entries(data).filter(([name]) => name !== "hasUsers" && name !== "messages"));
  }

  /** Texts and types of the messages that were added, in their order. */
  messages(pass: Pass): readonly (readonly [body: unknown, type: unknown])[] {
    const { messages } = this.sandbox.resources.data(objectKind(pass), pass.serial) ?? {};
    const all: readonly unknown[] = Array.isArray(messages) ? messages : [];
    return all.map((message) => [Reflect.get(Object(message), "body"), Reflect.get(Object(message), "messageType")]);
  }

  async close(): Promise<void> {
    this.wallet.close();
    await this.sandbox.stop();
  }
}

const JOB_ID = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";

export function aPass(
  overrides: Partial<Pass> & { readonly kind?: GoogleKind; readonly object?: JsonObject } = {},
): Pass {
  const { kind = "generic", object = {}, ...others } = overrides;
  const serial = others.serial ?? `${ISSUER}.pass-1`;
  const classId = `${ISSUER}.members`;
  const members = kind === "generic" ? { cardTitle: text("Acme"), header: text("Member") } : {};
  return {
    passId: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d22",
    tenantId: "acme",
    serial,
    state: "creating",
    version: 1,
    content: {
      type: "google",
      kind,
      classId,
      object: { state: "ACTIVE", ...members, ...object, id: serial, classId },
    },
    passTypeId: null,
    authenticationToken: null,
    jobId: JOB_ID,
    ...others,
  };
}

/** The pass's next version, with the given object in place of the former one. */
export function changed(pass: Pass, change: (object: JsonObject) => JsonObject): Pass {
  if (pass.content.type !== "google") throw new Error("not a Google pass");
  return { ...pass, version: pass.version + 1, content: { ...pass.content, object: change(pass.content.object) } };
}

export function ready(pass: Pass): Pass {
  return { ...pass, state: "ready" };
}

export function text(value: string): JsonObject {
  return { defaultValue: { language: "en", value } };
}

export function getObject({ content }: Pass): JsonObject {
  if (content.type !== "google") throw new Error("not a Google pass");
  return content.object;
}

function objectKind({ content }: Pass): string {
  if (content.type !== "google") throw new Error("not a Google pass");
  return `${content.kind}Object`;
}

function buildPayload({ passId, version }: Pass, action: "create" | "update"): WalletPayload {
  return { action, passId, version };
}
