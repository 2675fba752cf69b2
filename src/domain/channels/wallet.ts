import type { JsonObject } from "../texts/json.ts";

export const PASS_TYPES = ["apple", "google"] as const;
export type PassType = (typeof PASS_TYPES)[number];

/** Styles of Apple's passes: the key of pass.json that holds the fields. */
export const PASS_STYLES = ["eventTicket", "boardingPass", "coupon", "storeCard", "generic", "posterGeneric"] as const;
export type PassStyle = (typeof PASS_STYLES)[number];

/** Kinds of Google's classes and objects: `eventTicketObject`, `loyaltyClass`. */
export const GOOGLE_KINDS = ["generic", "eventTicket", "loyalty", "offer", "giftCard", "transit", "flight"] as const;
export type GoogleKind = (typeof GOOGLE_KINDS)[number];

/** Reasons for an update that applications can give. */
export const NOTIFICATION_KINDS = [
  "match.upcoming",
  "match.result.recorded",
  "player.advanced",
  "tournament.finished",
] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

/** Language → text in pass.json → text to display instead. */
export type PassStrings = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The content of a pass for Apple Wallet, ready to be signed. */
export interface AppleContent {
  readonly type: "apple";
  readonly style: PassStyle;
  /**
   * pass.json (Apple's names) without the members that the service itself sets: `formatVersion`, `passTypeIdentifier`,
   * `teamIdentifier`, `serialNumber`, `webServiceURL`, `authenticationToken`.
   */
  readonly pass: JsonObject;
  /** Absent: it has texts of one language only. */
  readonly strings?: PassStrings;
  /**
   * personalization.json, with which Wallet asks the holder for details such as a name. Absent: the pass asks for none.
   */
  readonly personalization?: JsonObject;
  /** A fingerprint of the holder's entries; once it is set, the pass no longer asks for them. */
  readonly personalized?: string;
  /** File name in the bundle (`icon@2x.png`, `de.lproj/icon@2x.png`) → the image's key in `SignablePass.images`. */
  readonly images: Readonly<Record<string, string>>;
}

/** The content of a pass for Google Wallet: an object of the REST API, with its `id` and `classId`. */
export interface GoogleContent {
  readonly type: "google";
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly object: JsonObject;
}

export type PassContent = AppleContent | GoogleContent;

/** A tenant's template of a pass: `pass_data` in the form of the API; a request's own `pass_data` overrides it. */
export interface WalletTemplate {
  readonly passType: PassType;
  readonly style: PassStyle | null;
  readonly passData: JsonObject;
}

/**
 * The material that signs a tenant's passes: a Pass Type ID certificate, its key, and the intermediate that issued it.
 */
export interface AppleSigner {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  readonly passphrase: string | null;
  /** Null: Apple's intermediate that issued the certificate. */
  readonly wwdrPem: string | null;
  readonly passTypeId: string;
  /** Ten characters. */
  readonly teamId: string;
}

/** Why a provider, or the credentials for it, cannot be used now: a sentence for the tenant. */
export interface Unusable {
  readonly why: string;
  /** It is unusable for good, whatever happens to the provider and the credentials. */
  readonly isForGood?: true;
}

/** A service account that may act for a Google Wallet issuer. */
export interface GoogleIssuer {
  readonly issuerId: string;
  readonly clientEmail: string;
  /** PKCS #8, PEM. */
  readonly privateKeyPem: string;
}
