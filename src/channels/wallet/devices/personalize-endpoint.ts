import { createHmac } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { AppleContent } from "../../../domain/channels/wallet.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { isJsonObject, type JsonObject } from "../../../domain/texts/json.ts";
import { ApiError } from "../../../http/api-error.ts";
import { CallTurns } from "../../../http/call-turns.ts";
import { type DocumentedBody, type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { failure } from "../../../http/failures.ts";
import { parseJson } from "../../../http/parse-json.ts";
import { walletLimits } from "../limits.ts";
import type { Pass } from "../passes.ts";
import { noSuchPass, unusable } from "../refusals.ts";
import { askingPass, asks } from "./pass-gate.ts";
import {
  BAD_REQUEST,
  BUSY,
  PREFIX,
  passType,
  readMember,
  serial,
  UNCACHED,
  UNKNOWN_PASS,
} from "./pass-kit-endpoints.ts";
import type { PassKitPorts } from "./pass-kit-ports.ts";

const { personalizationBytesMax, personalizationTokenCharsMax } = walletLimits;

/**
 * A token must not contain a dictionary in any notation (JSON, or Apple's property lists): a signature over a
 * dictionary of files would let a stranger make any pass.
 */
const TOKEN = new RegExp(`^[^{}<>"\\p{C}]{1,${personalizationTokenCharsMax}}$`, "u");
const TOKEN_IS = `a text of at most ${personalizationTokenCharsMax} characters without brackets, quotes and control characters`;
const DONE = "the pass has been personalized already";
const UNHEARD = "nobody is told of what is entered: the tenant has no webhook for pass.personalized";

interface Entered {
  readonly token: string;
  /** By Wallet's names: `fullName`, `emailAddress`, … */
  readonly info: JsonObject;
}

const BODY: DocumentedBody = {
  schema: Type.Object({
    personalizationToken: Type.String({ maxLength: personalizationTokenCharsMax, description: TOKEN_IS }),
    requiredPersonalizationInfo: Type.Record(Type.String(), Type.Unknown(), {
      description:
        "The entered values, such as `fullName`, `givenName`, `familyName`, `emailAddress`, `phoneNumber`, `postalCode`.",
    }),
  }),
  examples: [
    {
      personalizationToken: "b0f3c2a19d7e4f5a8c6b1e2d3f4a5b6c",
      requiredPersonalizationInfo: {
        fullName: "Ann Lee",
        givenName: "Ann",
        familyName: "Lee",
        emailAddress: "ann@example.com",
      },
    },
  ],
};

/**
 * Receives the data that a holder enters in a pass's form (Apple, Wallet Passes: Return a Personalized Pass). Wallet
 * then fetches the pass, which no longer has the form, and the tenant's own update adds the personal content.
 *
 * S1. The data is on disk for the tenant's webhooks before the form is removed, and the form is removed before Wallet
 *     gets its answer: an interrupted call is repeated, and reported once. Without a webhook for it, the data is
 *     refused.
 * S2. A pass is personalized once, until its tenant adds a new form. Anyone who knows the serial can call, but only
 *     gets a signature over a token.
 */
export function personalizeEndpoint(passKit: PassKitPorts, clock: Clock): Endpoint {
  const turns = new CallTurns(walletLimits.personalizations, clock);
  return endpoint({
    method: "POST",
    path: `${PREFIX}/passes/:passType/:serial/personalize`,
    name: "pass_personalize",
    operation: "personalizePass",
    tag: "Pass devices",
    security: ["applePass", null],
    summary: "Receives what the holder of a pass entered in its sign-up form",
    description: "The tenant's webhooks hear of it as `pass.personalized`. Safe to repeat.",
    params: { passType, serial },
    body: BODY,
    answers: {
      200: {
        description: "The token's detached signature (PKCS #7, DER) under the pass's certificate.",
        schema: null,
        mediaType: "application/octet-stream",
        isBinary: true,
      },
    },
    fails: {
      400: BAD_REQUEST,
      401: UNKNOWN_PASS,
      404: failure("PassAsksNothing", "The pass has no form.", "the pass asks its holder for nothing"),
      409: failure("PassPersonalized", "Others have personalized the pass, or nobody would be told.", DONE),
      413: failure(
        "EnteredTooLarge",
        "The body is too large.",
        `the body is larger than ${personalizationBytesMax} bytes`,
      ),
      429: BUSY,
    },
    async handle(door, exchange, params) {
      const passTypeId = passType.read(params["passType"] ?? null);
      const named = { passTypeId, serial: serial.read(params["serial"] ?? null) };
      const pass = await askingPass(exchange, passKit.passes, named);
      const entered = enteredIn(await door.bytes(exchange, personalizationBytesMax));
      const tenant = await door.ports.directory.byId(pass.tenantId);
      if (tenant === null) throw noSuchPass();
      const atMs = clock.nowMs();
      const signature = await turns.inTurn(pass.passId, () => personalized(passKit, { pass, tenant, atMs }, entered));
      return exchange.body(200, signature, { ...UNCACHED, "content-type": "application/octet-stream" });
    },
  });
}

interface Personalizing {
  readonly pass: Pass;
  readonly tenant: Tenant;
  readonly atMs: number;
}

/** Returns the signed token once the personalization is stored. */
async function personalized(
  { passes, bundles, news, jobIds }: PassKitPorts,
  { pass, tenant, atMs }: Personalizing,
  { token, info }: Entered,
): Promise<Uint8Array<ArrayBuffer>> {
  const { passId, tenantId, content, version, serial: serial_number } = pass;
  if (!asks(content)) throw new ApiError(404, "the pass asks its holder for nothing");
  const mark = computeMark(pass, info);
  if (content.personalization === undefined && content.personalized !== mark) throw new ApiError(409, DONE);
  const signature = await bundles.signText(token, pass, tenant);
  if ("why" in signature) throw unusable(signature);
  let latest: Pass = pass;
  if (content.personalization !== undefined) {
    const data = { pass_id: passId, serial_number, entered: info };
    const kind = { tenantId, type: "pass.personalized", channel: "wallet" } as const;
    if (!(await news.isAskedFor(kind))) throw new ApiError(409, UNHEARD);
    await news.tell([{ ...kind, id: `${passId} ${version} ${mark}`, atMs, data }]);
    const updated = await passes.update(tenantId, {
      passId,
      jobId: jobIds.next(),
      notificationKind: null,
      notifyMessage: null,
      images: new Map(),
      change: (now) => withoutForm(now, mark),
    });
    if (updated === null) throw noSuchPass();
    if ("why" in updated) throw new ApiError(409, updated.why);
    latest = updated;
  }
  const bundle = await bundles.getBundle(latest, tenant);
  if (bundle === null) throw noSuchPass();
  if ("why" in bundle) throw unusable(bundle);
  return signature;
}

/** Returns the content without the form; null if another call was first. */
function withoutForm({ content }: Pass, mark: string): AppleContent | null {
  if (content.type !== "apple" || content.personalization === undefined) return null;
  const { personalization: _, ...others } = content;
  return { ...others, personalized: mark };
}

/** Computes a mark that identifies a repeated call, and reveals the data only to holders of the pass's token. */
function computeMark({ authenticationToken }: Pass, info: JsonObject): string {
  return createHmac("sha256", authenticationToken ?? "")
    .update(JSON.stringify(info))
    .digest("base64url");
}

/** Throws an `ApiError` 400. */
function enteredIn(body: Uint8Array): Entered {
  const parsed = parseJson(body);
  const token = readMember(parsed, "personalizationToken");
  if (typeof token !== "string" || !TOKEN.test(token)) {
    throw new ApiError(400, `personalizationToken must be ${TOKEN_IS}`);
  }
  const info = readMember(parsed, "requiredPersonalizationInfo");
  if (!isJsonObject(info)) throw new ApiError(400, "requiredPersonalizationInfo must be an object");
  return { token, info };
}
