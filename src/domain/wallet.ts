import type { JsonObject } from "./json.ts";

export const PASS_TYPES = ["apple", "google"] as const;
export type PassType = (typeof PASS_TYPES)[number];

/** Styles of Apple's passes: the key of pass.json that holds the fields. */
export const PASS_STYLES = ["eventTicket", "boardingPass", "coupon", "storeCard", "generic"] as const;
export type PassStyle = (typeof PASS_STYLES)[number];

/** Kinds of Google's classes and objects: `eventTicketObject`, `genericObject`. */
export const GOOGLE_KINDS = ["generic", "eventTicket"] as const;
export type GoogleKind = (typeof GOOGLE_KINDS)[number];

/** Reasons for an update that applications name. */
export const NOTIFICATION_KINDS = [
  "match.upcoming",
  "match.result.recorded",
  "player.advanced",
  "tournament.finished",
] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

/** Payload of a wallet job: the pass itself is in the registry, stored before the job was accepted. */
export interface WalletPayload {
  readonly action: "create" | "update";
  readonly passId: string;
  /** The pass's version that the job brings to its holders, or a later one. */
  readonly version: number;
  /** Google: shown to the pass's holders. */
  readonly notifyMessage?: string;
}

/** What a pass for Apple's wallet says, ready to be signed. */
export interface AppleContent {
  readonly type: "apple";
  readonly style: PassStyle;
  /**
   * pass.json (Apple's names) without what the service itself sets: `formatVersion`, `passTypeIdentifier`,
   * `teamIdentifier`, `serialNumber`, `webServiceURL`, `authenticationToken`.
   */
  readonly pass: JsonObject;
  /** File name in the bundle (`icon@2x.png`) → SHA-256 of its bytes in hex, the key of `PassStore.images`. */
  readonly images: Readonly<Record<string, string>>;
}

/** What a pass for Google's wallet says: an object of the REST API, with its `id` and `classId`. */
export interface GoogleContent {
  readonly type: "google";
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly object: JsonObject;
}

export type PassContent = AppleContent | GoogleContent;

/** A tenant's template of a pass: `pass_data` in the form of the API, which a request's own is laid over. */
export interface WalletTemplate {
  readonly passType: PassType;
  readonly style: PassStyle | null;
  readonly passData: JsonObject;
}

/** What signs a tenant's passes: a Pass Type ID certificate, its key, and the intermediate that issued it. */
export interface AppleSigner {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  readonly passphrase: string | null;
  /** Null: the one of Apple's that issued the certificate. */
  readonly wwdrPem: string | null;
  readonly passTypeId: string;
  /** Ten characters. */
  readonly teamId: string;
}

/** A service account that may act for an issuer of Google's wallet. */
export interface GoogleIssuer {
  readonly issuerId: string;
  readonly clientEmail: string;
  /** PKCS #8, PEM. */
  readonly privateKeyPem: string;
}
